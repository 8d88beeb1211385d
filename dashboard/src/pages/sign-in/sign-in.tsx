import { useMutation, useQuery } from "@tanstack/react-query";
import { LogIn } from "lucide-react";
import { type ReactNode, useState } from "react";
import { type CreateSessionRequest, WaypostError } from "waypost";
import { baseUrl, waypost } from "@/api";
import { Button, buttonClass } from "@/ui/button";
import { Field, Form, Input } from "@/ui/form";
import { LoadError, Notice, Skeleton } from "@/ui/page";
import { PasswordInput } from "@/ui/password";
import { Failure, useSecondsLeft } from "./failure";
import { Frame } from "./frame";
import { useEnter } from "./next";
import { oidcError } from "./oidc-errors";
import { SecondFactor } from "./second-factor";

/** Whether the password was right and a code is asked for now. */
const wantsCode = (error: unknown): boolean =>
  error instanceof WaypostError && (error.reason === "SECOND_FACTOR_REQUIRED" || error.reason === "SECOND_FACTOR_WRONG");

interface SignInProps {
  /** The page to go to. */
  next?: string;
  /** Whether a session has just ended. */
  ended?: boolean;
  /** Why the sign-in at another provider failed. */
  error?: string;
}

export function SignIn({ next, ended, error }: SignInProps) {
  const enter = useEnter();
  const [asked, setAsked] = useState(false);
  const [login, setLogin] = useState({ email: "", password: "" });
  const signIn = useMutation({
    mutationFn: async (request: CreateSessionRequest) => {
      await waypost.session.create(request, { maxRetries: 0 });
      await enter(next);
    },
    onError: (error) => wantsCode(error) && setAsked(true),
  });
  if (asked) {
    return (
      <SecondFactor
        error={signIn.error}
        busy={signIn.isPending}
        onCode={(code) => signIn.mutate({ ...login, code })}
        onBack={() => {
          setAsked(false);
          signIn.reset();
        }}
      />
    );
  }
  return (
    <Frame
      title="Sign in to Waypost"
      help={
        <>
          <p>Forgot your password? Whoever runs this Waypost can give you a link that sets a new one.</p>
          <p>No account yet? An owner of your organization can invite you.</p>
        </>
      }
    >
      {ended && (
        <div className="mb-5">
          <Notice>Your session has ended. Sign in again to go on where you were.</Notice>
        </div>
      )}
      {error && (
        <div className="mb-5">
          <Notice kind="error">{oidcError(error)}</Notice>
        </div>
      )}
      <Methods>
        <Login login={login} onChange={setLogin} error={signIn.error} busy={signIn.isPending} onSubmit={() => signIn.mutate(login)} />
      </Methods>
    </Frame>
  );
}

/** The ways to sign in that this Waypost offers. */
function Methods({ children }: { children: ReactNode }) {
  const methods = useQuery({ queryKey: ["sign-in-methods"], queryFn: () => waypost.session.listSignInMethods(), staleTime: Number.POSITIVE_INFINITY });
  if (methods.error) return <LoadError error={methods.error} retry={() => void methods.refetch()} />;
  if (!methods.data) {
    return (
      <div role="status" aria-label="Loading" className="space-y-4">
        <Skeleton className="h-9 w-full" />
        <Skeleton className="h-9 w-full" />
      </div>
    );
  }
  const { password, oidc } = methods.data;
  return (
    <div className="space-y-5">
      {oidc && (
        <a href={`${baseUrl}${oidc.url}`} className={`${buttonClass(password ? "secondary" : "primary")} w-full`}>
          <LogIn aria-hidden />
          Continue with {oidc.name}
        </a>
      )}
      {oidc && password && (
        <div className="flex items-center gap-3 text-xs text-text-3">
          <span className="h-px flex-1 bg-line" />
          or
          <span className="h-px flex-1 bg-line" />
        </div>
      )}
      {password && children}
    </div>
  );
}

interface LoginProps {
  login: { email: string; password: string };
  onChange(login: LoginProps["login"]): void;
  error: unknown;
  busy: boolean;
  onSubmit(): void;
}

function Login({ login, onChange, error, busy, onSubmit }: LoginProps) {
  const left = useSecondsLeft(error);
  return (
    <Form error={error instanceof WaypostError && error.issues.length > 0 ? error : undefined} onSubmit={onSubmit} label="Sign in">
      <Field label="Email address" path="email">
        {(control) => (
          <Input
            {...control}
            type="email"
            name="email"
            autoComplete="username"
            autoFocus
            required
            value={login.email}
            onChange={(event) => onChange({ ...login, email: event.target.value })}
          />
        )}
      </Field>
      <Field label="Password" path="password">
        {(control) => (
          <PasswordInput
            {...control}
            name="password"
            autoComplete="current-password"
            required
            value={login.password}
            onChange={(event) => onChange({ ...login, password: event.target.value })}
          />
        )}
      </Field>
      {error ? <Failure error={error} wrong="The email address or the password is wrong." /> : null}
      <Button kind="primary" type="submit" className="w-full" busy={busy} disabled={!login.email || !login.password || (left ?? 0) > 0}>
        Sign in
      </Button>
    </Form>
  );
}
