/**
 * Commands to a machine's QEMU on its control socket: disks are pulled and plugged while it runs.
 *
 * 1. One connection for each exchange: QEMU talks to one at a time.
 */
import { connect } from 'node:net';
import { join } from 'node:path';

const EXCHANGE_LIMIT_MS = 120_000;

/** A machine whose control socket is in this folder. */
export interface QmpMachine {
  readonly folder: string;
}

/** A command of the QEMU Machine Protocol. */
export interface QmpCommand {
  readonly execute: string;
  readonly arguments?: Readonly<Record<string, unknown>>;
}

interface QmpLine {
  readonly QMP?: object;
  readonly return?: unknown;
  readonly error?: { readonly desc: string };
  readonly event?: string;
  readonly data?: { readonly device?: string };
}

/** Sends commands in order; rejects with QEMU's words when one is refused. */
export async function tellQemu(
  machine: QmpMachine,
  commands: readonly QmpCommand[],
): Promise<void> {
  await exchange(machine, commands, undefined);
}

/** Asks one thing; rejects with QEMU's words when it is refused. */
export async function askQemu(machine: QmpMachine, command: QmpCommand): Promise<unknown> {
  return (await exchange(machine, [command], undefined)).at(-1);
}

/** Pulls a device; settles when the machine has let go of it. */
export async function pullDevice(machine: QmpMachine, device: string): Promise<void> {
  await exchange(machine, [{ execute: 'device_del', arguments: { id: device } }], device);
}

/**
 * Settles once all commands are answered and, if one is named, that device is gone; with the
 * answers in order, after that to the greeting.
 */
async function exchange(
  machine: QmpMachine,
  commands: readonly QmpCommand[],
  goneDevice: string | undefined,
): Promise<readonly unknown[]> {
  const socket = connect(join(machine.folder, 'qmp.sock'));
  const waiting: QmpCommand[] = [{ execute: 'qmp_capabilities' }, ...commands];
  const answers: unknown[] = [];
  const answersMax = waiting.length;
  let isGone = goneDevice === undefined;
  await new Promise<void>((resolve, reject) => {
    const what = commands.map(({ execute }) => execute).join(', ');
    const timer = setTimeout(
      () => reject(new Error(`${what}: no end within ${EXCHANGE_LIMIT_MS / 1000} s`)),
      EXCHANGE_LIMIT_MS,
    );
    const sendNext = (): void => {
      const next = waiting.shift();
      if (next !== undefined) socket.write(`${JSON.stringify(next)}\n`);
    };
    const take = (line: QmpLine): void => {
      if (line.error !== undefined) reject(new Error(`${what}: ${line.error.desc}`));
      if (line.QMP !== undefined) sendNext();
      if (line.return !== undefined) {
        answers.push(line.return);
        sendNext();
      }
      if (line.event === 'DEVICE_DELETED' && line.data?.device === goneDevice) isGone = true;
      if (answers.length === answersMax && isGone) resolve();
    };
    let rest = '';
    socket.setEncoding('utf8');
    socket.on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) take(JSON.parse(line) as QmpLine);
    });
    socket.on('error', reject);
    socket.on('close', () => clearTimeout(timer));
  }).finally(() => socket.destroy());
  return answers;
}
