/**
 * Derives from ipmitool's words why a call failed. Its exit code is 1 for everything, and without
 * `-v` a wrong password and a silent BMC print the same line, so the words of `-v` decide. (`-vv`
 * prints keys: never used.)
 */
import type { ExecResult } from '@rackwright/platform';
import { type BmcFailed, type BmcTransient, failed, transient } from '../driver.ts';

type BmcRefusal = BmcFailed | BmcTransient;
type Rule = readonly [pattern: RegExp, refusal: (text: string) => BmcRefusal];

const askAdmin = 'correct the credential';

/** In order: the more specific words first, since several lines come together. */
const rules: readonly Rule[] = [
  [
    /RAKP 2 HMAC is invalid|RAKP 4 message.*invalid integrity|invalid integrity check value/i,
    (text) => failed('authentication', `the BMC does not accept the password: ${askAdmin}`, text),
  ],
  [
    /SOL payload already active|SOL payload activation limit/i,
    (text) => transient('busy', 'somebody else has the serial console of this BMC', text),
  ],
  [
    /SOL payload disabled|Requested SOL payload with encryption/i,
    (text) => failed('unsupported', 'the BMC does not offer serial over LAN to this user', text),
  ],
  [
    /unauthorized name|invalid name length|invalid user ?name/i,
    (text) => failed('authentication', `the BMC does not know the user: ${askAdmin}`, text),
  ],
  [
    /unauthorized role|invalid role|insufficient privilege|rsp=0xd4/i,
    (text) => failed('privilege', 'the BMC user lacks the administrator privilege', text),
  ],
  [
    /invalid \w+ algorithm|no cipher suite match|no matching \w+ payload/i,
    (text) => failed('cipherSuite', 'the BMC refuses this cipher suite: choose another', text),
  ],
  [
    /insufficient resources|rsp=0xc0|node busy/i,
    (text) => transient('busy', 'the BMC is busy or out of sessions', text),
  ],
  [
    /address lookup for .* failed/i,
    (text) => failed('address', 'the BMC address cannot be resolved: correct it', text),
  ],
  [
    /unable to (open|read) (file|password)/i,
    (text) => failed('toolMissing', 'ipmitool could not read the password from a pipe', text),
  ],
  // IPMI 2.0 table 5-2: a timeout within, no answer possible, an update of firmware, a start.
  [
    /rsp=0x(?:c3|ce|d[0-2])|device not present \((?:timeout|bmc initiali[sz]ation)/i,
    (text) => transient('trouble', 'the BMC cannot answer this now', text),
  ],
  // §34.2: 81h is "FRU device busy".
  [
    /device not present \(unknown \(0x81\)\)/i,
    (text) => transient('trouble', 'the BMC cannot read its FRU now', text),
  ],
  // A part was not read. The words that are left out say that it never can be.
  [
    /fru read failed(?!: (?:request|parameter out of|cannot return|invalid))/i,
    (text) => transient('trouble', 'the BMC did not give all of its FRU', text),
  ],
  // What ipmitool says when an answer within a session is lost.
  [
    /device not present \(no response\)|unable to send raw command \((?![^)]*rsp=)/i,
    (text) => transient('unreachable', 'the BMC does not answer', text),
  ],
  [
    /rsp=0xc1|invalid command/i,
    (text) => failed('unsupported', 'the BMC does not know this command', text),
  ],
  // The FRU is optional, and some BMCs have a blank one.
  [
    /unknown fru header version|invalid fru size/i,
    (text) => failed('rejected', 'the FRU of the BMC is blank', text),
  ],
  [
    /rsp=0x[0-9a-f]{2}|device not present|fru read failed/i,
    (text) => failed('rejected', 'the BMC refused the command', text),
  ],
  [
    /unable to establish|get auth capabilities error|no response|timeout|channel authentication/i,
    (text) => transient('unreachable', 'the BMC does not answer', text),
  ],
];

const shellNotFound = 127;
const shellNotExecutable = 126;
const textCharactersMax = 512;

/** The meaning of a call that did not answer. `secret` is removed from the words. */
export function refusalOf(result: ExecResult, secret: string): BmcRefusal {
  switch (result.kind) {
    case 'notStarted':
      return failed('toolMissing', 'ipmitool could not be started', result.message);
    case 'timedOut': {
      const text = reasonText(result.stderr, secret);
      return transient('unreachable', 'the BMC did not answer in time', text);
    }
    case 'exited': {
      const text = reasonText(`${result.stderr}\n${result.stdout}`, secret);
      if (result.code === shellNotFound || result.code === shellNotExecutable) {
        return failed('toolMissing', 'ipmitool is not installed on this agent: install it', text);
      }
      for (const [pattern, refusal] of rules) {
        if (pattern.test(text)) return refusal(text);
      }
      return failed('malformed', `ipmitool ended with code ${result.code}`, text);
    }
  }
}

/** Lines of `fru print` about what it could not read. Texts of the FRU stand behind a label. */
const unreadFru = /^ ?(?:FRU Read failed|Device not present \()/;

/**
 * Why the output of `fru print` is incomplete, which its exit code does not tell; undefined: it is
 * whole, or what is missing is missing for good.
 */
export function refusalOfFru(stdout: string, stderr: string): BmcRefusal | undefined {
  const lines = `${stderr}\n${stdout}`.split('\n').filter((line) => unreadFru.test(line));
  if (lines.length === 0) return undefined;
  const result = { kind: 'exited', code: 0, stdout: '', stderr: lines.join('\n') } as const;
  const refusal = refusalOf(result, '');
  return isLasting(refusal) ? undefined : refusal;
}

function isLasting(refusal: BmcRefusal): boolean {
  if (refusal.kind === 'transient') return false;
  return refusal.type === 'rejected' || refusal.type === 'unsupported';
}

/** Lines that `-v` prints on every call, without information about this one. */
const chatter =
  /^(Loading IANA|Running Get VSO|Discovered IPMB|RAW R|Invalid completion code| ?[0-9a-f ]+$|$)/;

function reasonText(output: string, secret: string): string {
  const lines = output.split('\n').filter((line) => !chatter.test(line));
  const text = lines
    .map((line) => line.trim())
    .join('; ')
    .replaceAll(/\p{Cc}/gu, '');
  const safe = secret === '' ? text : text.replaceAll(secret, '***');
  return safe.slice(0, textCharactersMax);
}
