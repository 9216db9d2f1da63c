/** Answers to clients without access, and of a BMC that speaks no Redfish. */
import { type RedfishAnswer, refusal } from './messages.ts';

export const rubbish: RedfishAnswer = {
  status: 200,
  headers: { 'content-type': 'text/html; charset=utf-8' },
  body: '<!DOCTYPE html><html><head><title>Management Console</title></head><body></body></html>',
};

export function deny(
  why: { readonly kind: 'refused' } | { readonly kind: 'lockedOut'; readonly remainingMs: number },
): RedfishAnswer {
  if (why.kind === 'refused') return refusal(401, 'NoValidSession', 'user or password is wrong');
  const seconds = Math.ceil(why.remainingMs / 1_000);
  return refusal(401, 'AccountLocked', `the account is locked for ${seconds} s`);
}
