/** Answers to clients without access, of a BMC that speaks no Redfish, and of a faulty one. */
import type { RefusedPatch } from './bios.ts';
import { noContent, type RedfishAnswer, refusal } from './messages.ts';
import type { RedfishFault } from './options.ts';

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

export function answerOf(refused: RefusedPatch | undefined): RedfishAnswer {
  return refused === undefined ? noContent() : refusal(400, refused.key, refused.text);
}

/** The answer to a change that was carried out, under a fault. */
export function answerUnder(fault: RedfishFault, answer: RedfishAnswer): RedfishAnswer {
  switch (fault.kind) {
    case 'dropsHalfway':
      return { ...answer, isDropped: true };
    case 'answersOddly':
      return oddAnswers[fault.by];
    default:
      return answer;
  }
}

const oddAnswers = {
  redirect: { ...noContent(), status: 303, headers: { location: '/done.html' } },
  // More than a client reads of one answer.
  tooManyBytes: { ...rubbish, body: ' '.repeat(2_000_000) },
  gatewayTimeout: refusal(504, 'GeneralError', 'the service behind has not answered in time'),
} as const;
