/**
 * The switch that the machines are cabled to names itself and each machine's port (LLDP, IEEE
 * 802.1AB). Linux forwards no such frame over a bridge, so each tap gets its own.
 */
import { join } from 'node:path';
import { type Started, startProcess } from './processes.ts';
import type { LabMachine } from './qemu.ts';
import type { Undo } from './undo.ts';

/** As the switch names itself. */
export const SWITCH = { chassisId: '02:00:00:00:5a:01', systemName: 'leaf-1' } as const;
/** Real switches send every 30 s. A machine of the lab is inspected sooner. */
const INTERVAL_S = 1;

/** A tap without a machine takes no frame, which is no reason to end. */
const SENDER = `
import socket, sys, time

def tlv(kind, value):
    return (kind << 9 | len(value)).to_bytes(2, 'big') + value

chassis = bytes.fromhex(sys.argv[1].replace(':', ''))
name, interval, ports = sys.argv[2].encode(), float(sys.argv[3]), sys.argv[4:]
sockets = []
for port in ports:
    tap, label = port.split('=')
    card = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    card.bind((tap, 0))
    head = bytes.fromhex('0180c200000e') + chassis + bytes.fromhex('88cc')
    body = tlv(1, b'\\x04' + chassis) + tlv(2, b'\\x05' + label.encode()) + tlv(3, b'\\x00\\x78')
    sockets.append((card, head + body + tlv(5, name) + tlv(0, b'')))
while True:
    for card, frame in sockets:
        try:
            card.send(frame)
        except OSError:
            pass
    time.sleep(interval)
`;

/** The label of the port that this machine is cabled to. */
export function portOf(machine: Pick<LabMachine, 'index'>): string {
  return `Ethernet${machine.index + 1}`;
}

/** Where the switch stands. */
export interface SwitchPlace {
  readonly namespace: string;
  /** For its log. */
  readonly folder: string;
}

/** Starts to send on the taps of these machines. */
export function startSwitch(
  undo: Undo,
  { namespace, folder }: SwitchPlace,
  machines: readonly Pick<LabMachine, 'index'>[],
): Started {
  const ports = machines.map((machine) => `tap${machine.index}=${portOf(machine)}`);
  const { chassisId, systemName } = SWITCH;
  return startProcess(undo, {
    name: 'switch',
    file: 'python3',
    args: ['-c', SENDER, chassisId, systemName, String(INTERVAL_S), ...ports],
    logFile: join(folder, 'switch.log'),
    namespace,
  });
}
