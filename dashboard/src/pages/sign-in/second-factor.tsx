import { useState } from "react";
import { WaypostError } from "waypost";
import { Button } from "@/ui/button";
import { Field, Form, Input } from "@/ui/form";
import { Failure, useSecondsLeft } from "./failure";
import { Frame } from "./frame";

interface SecondFactorProps {
  error: unknown;
  busy: boolean;
  onCode(code: string): void;
  onBack(): void;
}

/** The second step: a code of the app, or one of the recovery codes. */
export function SecondFactor({ error, busy, onCode, onBack }: SecondFactorProps) {
  const [recovery, setRecovery] = useState(false);
  const [code, setCode] = useState("");
  const left = useSecondsLeft(error);
  const isFirst = error instanceof WaypostError && error.reason === "SECOND_FACTOR_REQUIRED";
  const change = () => {
    setRecovery(!recovery);
    setCode("");
  };
  return (
    <Frame
      title="Second factor"
      description={recovery ? "Enter one of the recovery codes that you stored. Each works once." : "Enter the code that your authenticator app shows now."}
      help={
        <button type="button" onClick={onBack} className="text-accent-text hover:underline">
          Sign in as somebody else
        </button>
      }
    >
      <Form error={undefined} onSubmit={() => onCode(code.trim())} label="Second factor">
        <CodeField key={String(recovery)} recovery={recovery} code={code} onChange={setCode} />
        {error && !isFirst ? <Failure error={error} wrong={recovery ? "This recovery code is wrong, or was used before." : "This code is wrong, or was used before. Wait for the next one."} /> : null}
        <Button kind="primary" type="submit" className="w-full" busy={busy} disabled={!code.trim() || (left ?? 0) > 0}>
          Sign in
        </Button>
        <p className="text-center">
          <button type="button" onClick={change} className="text-[13px] text-accent-text hover:underline">
            {recovery ? "Use the authenticator app" : "Use a recovery code"}
          </button>
        </p>
      </Form>
    </Frame>
  );
}

interface CodeFieldProps {
  recovery: boolean;
  code: string;
  onChange(code: string): void;
  autoFocus?: boolean;
}

export function CodeField({ recovery, code, onChange, autoFocus = true }: CodeFieldProps) {
  return (
    <Field label={recovery ? "Recovery code" : "Code"} path="code">
      {(control) => (
        <Input
          {...control}
          autoFocus={autoFocus}
          value={code}
          onChange={(event) => onChange(event.target.value)}
          autoComplete={recovery ? "off" : "one-time-code"}
          inputMode={recovery ? "text" : "numeric"}
          spellCheck={false}
          autoCapitalize="none"
          className="text-center font-mono text-base! tracking-widest"
          maxLength={recovery ? 64 : 8}
        />
      )}
    </Field>
  );
}
