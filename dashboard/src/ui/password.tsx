import { Eye, EyeOff } from "lucide-react";
import { type InputHTMLAttributes, useState } from "react";
import { Input } from "./form";

/** A password, which a person may look at while typing. */
export function PasswordInput(props: Omit<InputHTMLAttributes<HTMLInputElement>, "type">) {
  const [shown, show] = useState(false);
  const Icon = shown ? EyeOff : Eye;
  return (
    <div className="relative">
      <Input {...props} type={shown ? "text" : "password"} spellCheck={false} autoCapitalize="none" className="pr-10" />
      <button
        type="button"
        onClick={() => show(!shown)}
        aria-label={shown ? "Hide the password" : "Show the password"}
        className="absolute top-0.5 right-0.5 flex size-8 items-center justify-center rounded text-text-3 hover:text-text"
      >
        <Icon className="size-4" aria-hidden />
      </button>
    </div>
  );
}

/** The rule of the API for new passwords, in words. */
export const PASSWORD_HINT = "At least 12 characters. A few words that only you would put together are better than one word with signs.";
