/** Why a sign-in at the OpenID Connect provider failed: the words that the callback puts into the address. */
const ERRORS: Record<string, string> = {
  OIDC_NOT_CONFIGURED: "No sign-in with another provider is set up here.",
  OIDC_UNREACHABLE: "The provider of your sign-in does not answer. Try again in a while.",
  OIDC_DENIED: "The provider did not sign you in, or you cancelled it.",
  OIDC_INVALID: "The sign-in could not be verified. It may have taken too long, or begun in another browser. Try again.",
  OIDC_EMAIL_NOT_VERIFIED: "The provider does not say that your email address is verified. Verify it there, then try again.",
  OIDC_ACCOUNT_EXISTS: "There is a user with your email address here, who signs in another way. Sign in with the password.",
  OIDC_NO_ROLE: "You are signed in at the provider, but nothing there gives you a role here. Ask whoever runs this Waypost.",
  NOT_A_MEMBER: "You belong to no organization here any more. Ask an owner to invite you.",
};

export const oidcError = (word: string): string => ERRORS[word] ?? "The sign-in failed. Try again in a while.";
