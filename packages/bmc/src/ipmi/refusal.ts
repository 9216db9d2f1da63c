/**
 * Derives from ipmitool's words why a call failed. Its exit code is 1 for everything, and without
 * `-v` a wrong password and a silent BMC print the same line, so the words of `-v` decide. (`-vv`
 * prints keys: never used.)
 */
import type { ExecResult } from '@rackwright/platform';
import { type BmcFailed, type BmcTransient, failed, transient } from '../driver.ts';

type BmcRefusal = BmcFailed | BmcTransient;
type Rule = readonly [words: RegExp, refusal: (words: string) => BmcRefusal];

const askAdmin = 'correct the credential';

/** In order: the more specific words first, since several lines come together. */
const rules: readonly Rule[] = [
  [
    /RAKP 2 HMAC is invalid|RAKP 4 message.*invalid integrity|invalid integrity check value/i,
    (words) => failed('authentication', `the BMC does not accept the password: ${askAdmin}`, words),
  ],
  [
    /SOL payload already active|SOL payload activation limit/i,
    (words) => transient('busy', 'somebody else has the serial console of this BMC', words),
  ],
  [
    /SOL payload disabled|Requested SOL payload with encryption/i,
    (words) => failed('unsupported', 'the BMC does not offer serial over LAN to this user', words),
  ],
  [
    /unauthorized name|invalid name length|invalid user ?name/i,
    (words) => failed('authentication', `the BMC does not know the user: ${askAdmin}`, words),
  ],
  [
    /unauthorized role|invalid role|insufficient privilege|rsp=0xd4/i,
    (words) => failed('privilege', 'the BMC user lacks the administrator privilege', words),
  ],
  [
    /invalid \w+ algorithm|no cipher suite match|no matching \w+ payload/i,
    (words) => failed('cipherSuite', 'the BMC refuses this cipher suite: choose another', words),
  ],
  [
    /insufficient resources|rsp=0xc0|node busy/i,
    (words) => transient('busy', 'the BMC is busy or out of sessions', words),
  ],
  [
    /address lookup for .* failed/i,
    (words) => failed('address', 'the BMC address cannot be resolved: correct it', words),
  ],
  [
    /unable to (open|read) (file|password)/i,
    (words) => failed('toolMissing', 'ipmitool could not read the password from a pipe', words),
  ],
  [
    /rsp=0xc1|invalid command/i,
    (words) => failed('unsupported', 'the BMC does not know this command', words),
  ],
  [
    /rsp=0x[0-9a-f]{2}|device not present/i,
    (words) => failed('rejected', 'the BMC refused the command', words),
  ],
  [
    /unable to establish|get auth capabilities error|no response|timeout|channel authentication/i,
    (words) => transient('unreachable', 'the BMC does not answer', words),
  ],
];

const shellNotFound = 127;
const shellNotExecutable = 126;
const wordsCharactersMax = 512;

/** The meaning of a call that did not answer. `secret` is removed from the words. */
export function refusalOf(result: ExecResult, secret: string): BmcRefusal {
  switch (result.kind) {
    case 'notStarted':
      return failed('toolMissing', 'ipmitool could not be started', result.message);
    case 'timedOut': {
      const words = tellingWords(result.stderr, secret);
      return transient('unreachable', 'the BMC did not answer in time', words);
    }
    case 'exited': {
      const words = tellingWords(`${result.stderr}\n${result.stdout}`, secret);
      if (result.code === shellNotFound || result.code === shellNotExecutable) {
        return failed('toolMissing', 'ipmitool is not installed on this agent: install it', words);
      }
      for (const [pattern, refusal] of rules) {
        if (pattern.test(words)) return refusal(words);
      }
      return failed('malformed', `ipmitool ended with code ${result.code}`, words);
    }
  }
}

/** Lines that `-v` prints on every call, without information about this one. */
const chatter =
  /^(Loading IANA|Running Get VSO|Discovered IPMB|RAW R|Invalid completion code| ?[0-9a-f ]+$|$)/;

function tellingWords(output: string, secret: string): string {
  const lines = output.split('\n').filter((line) => !chatter.test(line));
  const words = lines
    .map((line) => line.trim())
    .join('; ')
    .replaceAll(/\p{Cc}/gu, '');
  const safe = secret === '' ? words : words.replaceAll(secret, '***');
  return safe.slice(0, wordsCharactersMax);
}
