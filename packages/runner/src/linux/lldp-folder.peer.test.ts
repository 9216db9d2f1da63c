/** The ramdisk's own script and Debian's tcpdump on a cable on which frames of lldpd are sent. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { decodeCapture } from '../lldp/capture.ts';
import { frameOf, lldpdCapture, mandatory } from '../lldp/lldp.fixture.ts';
import { readNeighbors } from './lldp-folder.ts';

const script = join(import.meta.dirname, '../../ramdisk/lldp.sh');

const send = `
import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(('switch', 0))
for frame in sys.argv[1:]:
    s.send(bytes.fromhex(frame))
`;

/** In a network of its own; all that it started ends with its first process. */
const inNamespace = `
set -e
ip link add card type veth peer name switch
ip link set card up
ip link set switch up
busybox sh "$SCRIPT" card "$FOLDER" 60 &
until [ -s "$FOLDER/card.pcap" ]; do sleep 0.05; done
python3 -c "$SEND" $FRAMES
until [ "$(stat -c %s "$FOLDER/card.pcap")" -ge "$WANTED" ]; do sleep 0.05; done
`;

test('the runner reads what the ramdisk hears on a card, and nothing else', async (context) => {
  if (process.getuid?.() !== 0) return context.skip('not root');
  for (const program of ['busybox', 'ip', 'python3', 'tcpdump', 'unshare']) {
    const isThere = spawnSync('which', [program]).status === 0;
    if (!isThere) return context.skip(`peer missing: ${program}: run npm run peers`);
  }
  const run = mkdtempSync(join(tmpdir(), 'rackwright-lldp-'));
  try {
    const folder = join(run, 'rackwright/lldp');
    mkdirSync(folder, { recursive: true });
    const [said] = decodeCapture(lldpdCapture);
    const frame = said?.bytes ?? new Uint8Array();
    const chatter = frameOf(mandatory).fill(8, 12, 14);
    const env = {
      ...{ PATH: process.env['PATH'], SCRIPT: script, FOLDER: folder, SEND: send },
      FRAMES: [chatter, frame].map((each) => Buffer.from(each).toString('hex')).join(' '),
      WANTED: String(24 + 16 + frame.length),
    };
    const command = ['--net', '--pid', '--fork', '--kill-child', 'sh', '-c', inNamespace];
    const done = spawnSync('unshare', command, { env, encoding: 'utf8', timeout: 60_000 });
    if (done.stderr.includes('Operation not permitted')) return context.skip(done.stderr);
    expect({ code: done.status, text: done.stderr }).toEqual({ code: 0, text: '' });
    writeFileSync(join(folder, 'other.since'), 'broken\n');
    const roots = { sys: '/nowhere', proc: '/proc', run };
    const heard = await readNeighbors(['card', 'other', 'silent'], roots);
    expect([...heard.keys()]).toEqual(['card']);
    expect(heard.get('card')).toMatchObject({
      listenedSeconds: expect.any(Number),
      neighbors: [
        { chassisId: '9a:69:f2:28:6e:c7', portId: 'Ethernet7', systemName: 'leaf-1', portVlan: 42 },
      ],
    });
  } finally {
    rmSync(run, { recursive: true });
  }
});
