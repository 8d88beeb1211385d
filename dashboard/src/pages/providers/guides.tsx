/** What to click at each provider, by the names of its menus. */

import type { ReactNode } from "react";
import { Code } from "@/ui/code";
import type { Type } from "./types";

/** A way through menus: Settings › API Keys. */
export function Way({ to }: { to: readonly string[] }) {
  return (
    <span className="font-medium text-text">
      {to.map((name, at) => (
        <span key={name}>
          {at > 0 && <span className="px-1 font-normal text-text-3">›</span>}
          {name}
        </span>
      ))}
    </span>
  );
}

const B = ({ children }: { children: ReactNode }) => <strong className="font-medium text-text">{children}</strong>;

function Site({ href, children }: { href: string; children: ReactNode }) {
  return (
    <a href={href} target="_blank" rel="noreferrer" className="text-accent-text underline underline-offset-2">
      {children}
    </a>
  );
}

/** Numbered steps. */
export function Steps({ steps }: { steps: readonly ReactNode[] }) {
  return (
    <ol className="space-y-3">
      {steps.map((step, at) => (
        <li key={at} className="flex gap-3">
          <span aria-hidden className="flex size-5 shrink-0 items-center justify-center rounded-full bg-sunken text-xs font-medium text-text-2 tabular">
            {at + 1}
          </span>
          <div className="min-w-0 flex-1 text-[13px] leading-relaxed break-words text-text-2">{step}</div>
        </li>
      ))}
    </ol>
  );
}

const SES_POLICY = JSON.stringify(
  {
    Version: "2012-10-17",
    Statement: [
      {
        Effect: "Allow",
        Action: [
          "ses:SendEmail",
          "ses:GetAccount",
          "ses:ListEmailIdentities",
          "ses:GetEmailIdentity",
          "ses:CreateEmailIdentity",
          "ses:DeleteEmailIdentity",
          "ses:ListSuppressedDestinations",
        ],
        Resource: "*",
      },
    ],
  },
  null,
  2,
);

const DELIVERY_POLICY = JSON.stringify(
  { healthyRetryPolicy: { numRetries: 50, minDelayTarget: 60, maxDelayTarget: 60, backoffFunction: "linear" } },
  null,
  2,
);

/** How to get the credentials. */
export const CREDENTIAL_STEPS: Record<Type, readonly ReactNode[]> = {
  SENDGRID: [
    <>
      Sign in to <Site href="https://app.sendgrid.com">app.sendgrid.com</Site> and open <Way to={["Settings", "API Keys"]} />.
    </>,
    <>
      Click <B>Create API Key</B> and name it, for example “Waypost”.
    </>,
    <>
      Choose <B>Full Access</B>: then Waypost can also add domains, set up the event webhook and import suppressions. With{" "}
      <B>Restricted Access</B> the key needs at least <B>Mail Send</B> (scope <code>mail.send</code>); what else Waypost shall do needs the scopes{" "}
      <code>whitelabel.*</code> (domains), <code>user.webhooks.event.settings.*</code> (events), <code>suppression.read</code> (imports) and{" "}
      <code>email_activity.read</code> (asking whether a mail arrived after a lost answer).
    </>,
    <>
      Click <B>Create &amp; View</B> and copy the key. SendGrid shows it once.
    </>,
  ],
  POSTMARK: [
    <>
      Sign in to <Site href="https://account.postmarkapp.com">account.postmarkapp.com</Site> and open <Way to={["Servers"]} />. Choose the server
      that shall send, or click <B>Create server</B>.
    </>,
    <>
      Open the server's tab <B>API Tokens</B> and copy a token under <B>Server API tokens</B>.
    </>,
    <>
      For domains: open <Way to={["Account", "API Tokens"]} /> and copy a token under <B>Account API tokens</B>. Only the owner of the Postmark
      account sees it.
    </>,
    <>
      If you send through another stream than the default one: open the server, choose the stream, and take its id from the stream's settings.
    </>,
  ],
  MAILGUN: [
    <>
      Sign in to <Site href="https://app.mailgun.com">app.mailgun.com</Site>. Under <Way to={["Sending", "Domains"]} /> look up the domain to send
      from and its region, or add it there first.
    </>,
    <>
      Click <B>Account settings</B> at the upper right, then <B>API Security</B>.
    </>,
    <>Create an API key and copy it. Mailgun shows it once.</>,
    <>
      A domain's own sending key (<Way to={["Domains", "Domain Settings", "Sending API keys"]} />) works too, but then you set up events by hand.
    </>,
  ],
  SES: [
    <>
      In the AWS console open <Way to={["IAM", "Policies"]} />, click <B>Create policy</B>, choose <B>JSON</B> and paste:
      <div className="mt-2">
        <Code text={SES_POLICY} className="max-h-48 text-xs!" />
      </div>
    </>,
    <>
      Open <Way to={["IAM", "Users"]} />, click <B>Create user</B>, choose <B>Attach policies directly</B> and the policy that you made.
    </>,
    <>
      Open the user, tab <B>Security credentials</B>, click <B>Create access key</B>, choose <B>Application running outside AWS</B>, and copy both
      parts. AWS shows the secret once.
    </>,
    <>
      Open Amazon SES in your region, <Way to={["Configuration", "Configuration sets"]} />, click <B>Create set</B>, and name it, for example
      “waypost”. Events need it.
    </>,
    <>
      A new account is in the sandbox: it sends only to verified addresses. <Way to={["Amazon SES", "Account dashboard"]} /> has the button{" "}
      <B>Request production access</B>.
    </>,
  ],
  SMTP: [
    <>Ask whoever runs the mail server for its host name, port, encryption, and a user name with a password.</>,
    <>The server must let this user send from your domains. Waypost sends each mail with the sender of the mail as the envelope's sender.</>,
    <>
      Waypost connects to public servers only, unless its operator allows the network of yours (<code>WAYPOST_SMTP_ALLOW</code>).
    </>,
  ],
};

const pasteUrl = "the webhook URL of this page";

/** How to set up events by hand. */
export const EVENT_STEPS: Record<Type, readonly ReactNode[]> = {
  SENDGRID: [
    <>
      In SendGrid open <Way to={["Settings", "Mail Settings", "Event Webhooks"]} /> and create a webhook.
    </>,
    <>Give it {pasteUrl} as its post URL, and choose all actions: deliverability data and engagement data.</>,
    <>
      Enable the signature verification of the webhook (<B>Signed Event Webhook</B>), save, and copy its verification key into the field
      of this page.
    </>,
  ],
  POSTMARK: [
    <>Postmark signs nothing. Waypost makes a user name and a password for its posts, and gives them to Postmark with the webhook.</>,
    <>
      So register the webhook with the button of this page. If Postmark refuses, the server token or the message stream is wrong: replace the credentials.
    </>,
  ],
  MAILGUN: [
    <>
      In Mailgun open <Way to={["Send", "Sending", "Webhooks"]} /> and choose the domain.
    </>,
    <>Add {pasteUrl} for every event type of the domain: accepted, delivered, opened, clicked, unsubscribed, complained, and both failures.</>,
    <>
      Copy the <B>HTTP webhook signing key</B> from <Way to={["Account settings", "API Security"]} /> into the field
      of this page.
    </>,
  ],
  SES: [
    <>
      Open <Way to={["Amazon SNS", "Topics"]} /> in the region of the account and click <B>Create topic</B>, type <B>Standard</B>. In its access
      policy let Amazon SES (<code>ses.amazonaws.com</code>) publish to it.
    </>,
    <>Copy the topic's ARN into the field of this page and save: Waypost accepts only messages of this topic.</>,
    <>
      On the topic's page click <B>Create subscription</B>: protocol <B>HTTPS</B>, endpoint {pasteUrl}, and leave{" "}
      <B>Enable raw message delivery</B> off. Waypost confirms the subscription by itself.
    </>,
    <>
      Give the subscription this delivery policy. By default Amazon SNS gives up after about a minute, and the events are lost:
      <div className="mt-2">
        <Code text={DELIVERY_POLICY} className="text-xs!" />
      </div>
    </>,
    <>
      Open <Way to={["Amazon SES", "Configuration", "Configuration sets"]} />, choose the set that this account names (if it names
      none, create one, and name it when you replace the account's credentials), tab <B>Event destinations</B>, click <B>Add destination</B>. Choose <B>Sends</B>, <B>Deliveries</B>, <B>Delivery delays</B>, <B>Hard bounces</B>, <B>Complaints</B>,{" "}
      <B>Rejects</B> and <B>Rendering failures</B>, then the destination <B>Amazon SNS</B> and the topic.
    </>,
    <>
      Leave out <B>Opens</B> and <B>Clicks</B>: with them Amazon SES rewrites links and adds a pixel of its own, and Waypost records both itself.
    </>,
  ],
  SMTP: [],
};

/** Where a person adds a domain at the provider, if Waypost cannot. */
export const DOMAIN_WAY: Record<Type, ReactNode> = {
  SENDGRID: <Way to={["Settings", "Sender Authentication"]} />,
  POSTMARK: <Way to={["Sender Signatures"]} />,
  MAILGUN: <Way to={["Sending", "Domains"]} />,
  SES: <Way to={["Amazon SES", "Configuration", "Identities"]} />,
  SMTP: null,
};
