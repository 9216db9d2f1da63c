/**
 * Whether another address server is at work on our subnet. Two of them would give one address to
 * two hosts, so ours falls silent, says so, and comes back when the other has not been seen for
 * `quietMs`. Pure.
 */

export type Quiet =
  | { readonly kind: 'serving' }
  | { readonly kind: 'quiet'; readonly serverAddress: string; readonly untilMs: number };

export const serving: Quiet = { kind: 'serving' };

/** Our state after an answer of another server; `isNews` when people should learn of it. */
export function afterOtherServer(
  before: Quiet,
  serverAddress: string,
  nowMs: number,
  quietMs: number,
): { readonly quiet: Quiet; readonly isNews: boolean } {
  const isNews = !isQuiet(before, nowMs) || before.serverAddress !== serverAddress;
  return { quiet: { kind: 'quiet', serverAddress, untilMs: nowMs + quietMs }, isNews };
}

export function isQuiet(quiet: Quiet, nowMs: number): quiet is Extract<Quiet, { kind: 'quiet' }> {
  return quiet.kind === 'quiet' && quiet.untilMs > nowMs;
}
