/**
 * Option negotiation of a read request: blksize (RFC 2348), timeout and tsize (RFC 2349),
 * windowsize (RFC 7440).
 *
 * O1 Only what the client asked for is answered; an option that is unknown, or whose value is
 *    outside its RFC's range, is left out of the answer, which is how RFC 2347 refuses one.
 * O2 A block size or window above our limit is answered with the limit (both RFCs let the server
 *    lower them); a timeout is answered as asked or not at all: one above our limit, which would
 *    keep the transfer of a client that has gone, is not.
 * O3 The first of several options with one name counts.
 */
import type { TftpOption } from './packet.ts';

/** The default of a transfer without options. */
export const blockBytesDefault = 512;
export const windowBlocksDefault = 1;

/** Ranges of the RFCs: octets, blocks, seconds. */
const blksizeRange = [8, 65_464] as const;
const windowsizeRange = [1, 65_535] as const;
const timeoutRange = [1, 255] as const;

export interface OptionLimits {
  /** Largest DATA payload that we send; 1468 fits an Ethernet frame with IPv4 and UDP. */
  readonly blockBytesMax: number;
  /** Most blocks in flight. */
  readonly windowBlocksMax: number;
  /** Longest time between retransmissions that a client may choose, seconds (RFC 2349). */
  readonly timeoutSecondsMax: number;
}

export interface NegotiatedOptions {
  readonly blockBytes: number;
  readonly windowBlocks: number;
  /** Seconds between retransmissions, when the client chose them. */
  readonly timeoutSeconds: number | undefined;
  /** The options of the OACK; empty means no OACK, the first DATA block answers. */
  readonly answer: readonly TftpOption[];
}

/** Decides the options of a transfer of `fileBytes` bytes. Never throws, for any request. */
export function negotiate(
  requestedOptions: readonly TftpOption[],
  fileBytes: number,
  limits: OptionLimits,
): NegotiatedOptions {
  const answer: TftpOption[] = [];
  const seen = new Set<string>();
  let blockBytes: number = blockBytesDefault;
  let windowBlocks: number = windowBlocksDefault;
  let timeoutSeconds: number | undefined;
  for (const [spelling, text] of requestedOptions) {
    const name = spelling.toLowerCase();
    if (seen.has(name)) continue;
    seen.add(name);
    const accepted = acceptOption(name, text, fileBytes, limits);
    if (accepted === undefined) continue;
    answer.push([spelling, String(accepted)]);
    if (name === 'blksize') blockBytes = accepted;
    if (name === 'windowsize') windowBlocks = accepted;
    if (name === 'timeout') timeoutSeconds = accepted;
  }
  return { blockBytes, windowBlocks, timeoutSeconds, answer };
}

/** The value that answers an option, or undefined to leave it out (O1, O2). */
function acceptOption(
  name: string,
  text: string,
  fileBytes: number,
  limits: OptionLimits,
): number | undefined {
  switch (name) {
    case 'blksize':
      return lowered(within(text, blksizeRange), limits.blockBytesMax);
    case 'windowsize':
      return lowered(within(text, windowsizeRange), limits.windowBlocksMax);
    case 'timeout':
      return within(text, [timeoutRange[0], Math.min(timeoutRange[1], limits.timeoutSecondsMax)]);
    case 'tsize':
      // curl ends a transfer whose OACK says tsize 0, so an empty file has none.
      return fileBytes > 0 && within(text, [0, Number.MAX_SAFE_INTEGER]) !== undefined
        ? fileBytes
        : undefined;
    default:
      return undefined;
  }
}

function within(text: string, [lowest, highest]: readonly [number, number]): number | undefined {
  if (!/^\d{1,16}$/.test(text)) return undefined;
  const value = Number(text);
  return value >= lowest && value <= highest ? value : undefined;
}

function lowered(value: number | undefined, limit: number): number | undefined {
  return value === undefined ? undefined : Math.min(value, limit);
}
