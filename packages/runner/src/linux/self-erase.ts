/**
 * Methods that a device carries out on its own: sanitize of NVMe, ATA and SCSI, and ATA secure
 * erase. They go on inside the device when their caller dies, so their state is read first.
 *
 * Invariants:
 * S1 A method is started on the held descriptor of the device, never by a name.
 * S2 It resolves only when the device reports its end; the verdict decides what it has done.
 * S3 A disk that keeps our password after a failed erase has it removed; if that fails, the error
 *    names it.
 */
import {
  type DeviceFacts,
  type SanitizeFacts,
  type SelfErasure,
  securityErasePassword,
} from '@rackwright/erasure';
import type { Exec } from '@rackwright/platform';
import { DeviceError, type OwnWork } from '../machine/block-devices.ts';
import { parseAtaIdentity } from './ata-identity.ts';
import { ownWorkOf, parseNvmeSanitize, type SanitizeStatus } from './nvme-sanitize.ts';
import { inheritedPath, runTool, runToolForJson, toolOutput, toolOutputIfRun } from './tool.ts';

/** A held device: tools get its descriptor. */
export interface OpenDevice {
  readonly name: string;
  readonly descriptor: number;
}

/** Waits so many milliseconds. */
export type Pause = (ms: number) => Promise<void>;

const askTimeoutMs = 30_000;
/** Far beyond the largest disk: 1 TB takes about two hours, and none says more than weeks. */
const eraseTimeoutMs = 21 * 24 * 3_600_000;
const pollMs = 5_000;
const failedText = 'the last sanitize has failed';
/** Without it hdparm refuses commands that lose data. */
const sure = '--yes-i-know-what-i-am-doing';

/** Runs one method to its end. Rejects with `DeviceError`. Returns the tools' output. */
export async function eraseItself(
  exec: Exec,
  device: DeviceFacts,
  open: OpenDevice,
  method: SelfErasure,
  pause: Pause,
): Promise<string[]> {
  if (device.nvme !== undefined) return await sanitizeNvme(exec, open, method, pause);
  const isAta = (await readAta(exec, open)) !== undefined;
  switch (method) {
    case 'ataSecurityErase':
    case 'ataEnhancedErase':
      return await eraseSecurely(exec, open, method);
    case 'sanitizeCrypto':
    case 'sanitizeBlock':
    case 'sanitizeOverwrite':
      return isAta
        ? await sanitizeAta(exec, open, method, pause)
        : await sanitizeScsi(exec, open, method);
  }
}

/** The own work of a disk that is no NVMe device; undefined: none, or unreported. */
export async function readOwnWork(
  exec: Exec,
  { sanitize }: DeviceFacts,
  open: OpenDevice,
): Promise<OwnWork | undefined> {
  const offers = sanitize?.cryptoScramble || sanitize?.blockErase || sanitize?.overwrite;
  if (offers !== true) return undefined;
  if ((await readAta(exec, open)) !== undefined) {
    return ownWorkOf(parseAtaSanitize(await tell(exec, open, 'hdparm', ['--sanitize-status'])));
  }
  return parseSanitizeSense(await tell(exec, open, 'sg_requests', []));
}

/** The sanitize operations of SCSI disks: REPORT SUPPORTED OPERATION CODES for SANITIZE (48h). */
export async function readScsiSanitize(exec: Exec, path: string): Promise<SanitizeFacts> {
  const offers = async (action: number): Promise<boolean> => {
    const args = [`--opcode=0x48,0x${action}`, path];
    return isCommandSupported(await toolOutput(exec, 'sg_opcodes', args, askTimeoutMs));
  };
  return {
    overwrite: await offers(1),
    blockErase: await offers(2),
    cryptoScramble: await offers(3),
    ataSecurityErase: false,
    ataEnhancedErase: false,
  };
}

/** `Command is supported [conforming to SCSI standard]` */
export function isCommandSupported(text: string): boolean {
  return /\bis supported \[/i.test(text) && !/NOT supported/.test(text);
}

async function readAta(exec: Exec, open: OpenDevice) {
  return parseAtaIdentity(await tell(exec, open, 'hdparm', ['--Istdout']));
}

async function tell(
  exec: Exec,
  { descriptor }: OpenDevice,
  file: string,
  args: readonly string[],
): Promise<string> {
  return await toolOutput(exec, file, [...args, inheritedPath(0)], askTimeoutMs, [descriptor]);
}

async function command(
  exec: Exec,
  { descriptor }: OpenDevice,
  file: string,
  args: readonly string[],
): Promise<string[]> {
  return await runTool(exec, file, [...args, inheritedPath(0)], eraseTimeoutMs, [descriptor]);
}

/** SANACT (NVMe 2.0 figure 308): 2 block erase, 3 overwrite, 4 cryptographic erase. */
async function sanitizeNvme(
  exec: Exec,
  open: OpenDevice,
  method: SelfErasure,
  pause: Pause,
): Promise<string[]> {
  const path = inheritedPath(0);
  const run = (args: readonly string[]): Promise<string[]> =>
    runTool(exec, 'nvme', ['sanitize', path, ...args], askTimeoutMs, [open.descriptor]);
  const lines = await run(nvmeActions(method));
  for (;;) {
    const args = ['sanitize-log', path, '--output-format=json'];
    const log = await runToolForJson(exec, 'nvme', args, askTimeoutMs, [open.descriptor]);
    const status = parseNvmeSanitize(log);
    if (status.kind === 'done') return [...lines, status.text];
    if (status.kind !== 'running') throw new DeviceError(`${open.name}: ${status.text}`);
    await pause(pollMs);
  }
}

function nvmeActions(method: SelfErasure): readonly string[] {
  switch (method) {
    case 'sanitizeBlock':
      return ['--sanact=2'];
    case 'sanitizeOverwrite':
      return ['--sanact=3', '--owpass=1', '--ovrpat=0'];
    case 'sanitizeCrypto':
      return ['--sanact=4'];
    case 'ataSecurityErase':
    case 'ataEnhancedErase':
      throw new DeviceError(`an NVMe device does not know ${method}`);
  }
}

async function sanitizeAta(
  exec: Exec,
  open: OpenDevice,
  method: SelfErasure,
  pause: Pause,
): Promise<string[]> {
  const lines = await command(exec, open, 'hdparm', [sure, ...ataActions(method)]);
  for (;;) {
    const status = parseAtaSanitize(await tell(exec, open, 'hdparm', ['--sanitize-status']));
    if (status.kind === 'done') return [...lines, status.text];
    if (status.kind !== 'running') throw new DeviceError(`${open.name}: ${status.text}`);
    await pause(pollMs);
  }
}

function ataActions(method: SelfErasure): readonly string[] {
  switch (method) {
    case 'sanitizeBlock':
      return ['--sanitize-block-erase'];
    case 'sanitizeOverwrite':
      return ['--sanitize-overwrite-passes', '1', '--sanitize-overwrite', 'hex:00000000'];
    case 'sanitizeCrypto':
      return ['--sanitize-crypto-scramble'];
    case 'ataSecurityErase':
    case 'ataEnhancedErase':
      throw new DeviceError(`${method} is no sanitize`);
  }
}

/**
 * SANITIZE STATUS EXT as hdparm prints it: SD0 idle, SD1 frozen, SD2 running. In SD3 (failed) the
 * disk refuses the command, and hdparm says "Drive in SD3 Sanitize Operation Failed state".
 */
export function parseAtaSanitize(text: string): SanitizeStatus {
  const [, state = ''] = /(?:State:\s*|Drive in )(SD\d)\b/.exec(text) ?? [];
  const isGood = /Completed Without Error/i.test(text);
  switch (state) {
    case 'SD0':
      return isGood
        ? { kind: 'done', text: 'sanitize: completed without error' }
        : {
            kind: 'unknown',
            text: 'sanitize: idle, and the last one is not said to have succeeded',
          };
    case 'SD1':
      return { kind: 'unknown', text: 'sanitize is frozen until the next power cycle' };
    case 'SD2': {
      const [, percent = '?'] = /\((\d+)%\)/.exec(text) ?? [];
      return { kind: 'running', text: `a sanitize is in progress (${percent} %)` };
    }
    case 'SD3':
      return { kind: 'failed', text: failedText };
    default:
      return { kind: 'unknown', text: `sanitize: no status (${state || 'no answer'})` };
  }
}

/** sg_sanitize asks on until the device reports no progress any more. */
async function sanitizeScsi(exec: Exec, open: OpenDevice, method: SelfErasure): Promise<string[]> {
  const lines = await command(exec, open, 'sg_sanitize', ['--quick', ...scsiActions(method)]);
  const requests = [inheritedPath(0)];
  const sense = await toolOutputIfRun(exec, 'sg_requests', requests, askTimeoutMs, [
    open.descriptor,
  ]);
  // A disk at rest has no sense of a sanitize; a tool that did not answer is told apart from it.
  if (sense === undefined) {
    throw new DeviceError(`${open.name} does not say whether its sanitize has ended`);
  }
  const left = parseSanitizeSense(sense);
  if (left !== undefined) throw new DeviceError(`${open.name}: ${left.text}`);
  return lines;
}

function scsiActions(method: SelfErasure): readonly string[] {
  switch (method) {
    case 'sanitizeBlock':
      return ['--block'];
    case 'sanitizeOverwrite':
      return ['--overwrite', '--zero', '--ipl=4', '--count=1'];
    case 'sanitizeCrypto':
      return ['--crypto'];
    case 'ataSecurityErase':
    case 'ataEnhancedErase':
      throw new DeviceError(`a SCSI device does not know ${method}`);
  }
}

/**
 * Sense data as sg_requests decodes it: 02h/04h/1Bh is "sanitize in progress", 03h/31h/03h is
 * "Sanitize command failed". With `--progress` it would print the progress alone.
 */
export function parseSanitizeSense(text: string): OwnWork | undefined {
  if (/sanitize in progress/i.test(text) || /Progress indication: /.test(text)) {
    const [, percent = '?'] = /Progress indication: (\d+)/.exec(text) ?? [];
    return { kind: 'running', text: `a sanitize is in progress (${percent} %)` };
  }
  return /sanitize command failed/i.test(text) ? { kind: 'failed', text: failedText } : undefined;
}

/**
 * SECURITY SET PASSWORD, then SECURITY ERASE PREPARE and UNIT (ACS-3 §7.36 and on). The erase
 * removes the password itself. hdparm's exit code proves nothing: the state is read again.
 */
async function eraseSecurely(
  exec: Exec,
  open: OpenDevice,
  method: 'ataSecurityErase' | 'ataEnhancedErase',
): Promise<string[]> {
  await mustBe(exec, open, 'disabled', 'before the erase');
  const user = ['--user-master', 'u'];
  const erase = method === 'ataEnhancedErase' ? '--security-erase-enhanced' : '--security-erase';
  const set = ['--security-set-pass', securityErasePassword];
  const lines = await command(exec, open, 'hdparm', [sure, ...user, ...set]);
  await mustBe(exec, open, 'enabled', 'after its password was set');
  try {
    lines.push(
      ...(await command(exec, open, 'hdparm', [sure, ...user, erase, securityErasePassword])),
    );
    await mustBe(exec, open, 'disabled', 'after the erase');
    return lines;
  } catch (error) {
    await removePassword(exec, open);
    throw error;
  }
}

async function removePassword(exec: Exec, open: OpenDevice): Promise<void> {
  const state = (await readAta(exec, open))?.sanitize.ataSecurity;
  if (state === 'disabled') return;
  const args = [sure, '--user-master', 'u', '--security-disable', securityErasePassword];
  await tell(exec, open, 'hdparm', args);
  await mustBe(exec, open, 'disabled', `so its password is still "${securityErasePassword}"`);
}

async function mustBe(exec: Exec, open: OpenDevice, wanted: string, when: string): Promise<void> {
  const state = (await readAta(exec, open))?.sanitize.ataSecurity ?? 'unknown';
  if (state === wanted) return;
  throw new DeviceError(`${open.name}: ATA security is ${state}, not ${wanted}, ${when}`);
}
