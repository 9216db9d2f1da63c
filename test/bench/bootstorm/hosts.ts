/** Hosts made of software that boot over the real protocols, all at once, and what it took them. */
import { request } from 'node:http';
import type { RelayedHosts } from '../dhcp/client.ts';
import { fetchTogether } from '../tftp/client.ts';

/** The stages of a boot, in their order. */
export const stages = ['dhcp', 'loader', 'dhcp of iPXE', 'script', 'kernel', 'initrd'] as const;
export type Stage = (typeof stages)[number];

export interface BootSite {
  readonly dhcp: RelayedHosts;
  readonly tftpPort: number;
  readonly httpPort: number;
}

/** One boot that has come to its end. */
export interface Booted {
  /** Milliseconds of each stage. */
  readonly times: ReadonlyMap<Stage, number>;
  /** Transfers of its loader that it had to begin anew. */
  readonly givenUp: number;
}

const blockBytes = 1_468;
/** As EDK2 offers it (RFC 7440). */
const windowBlocks = 4;

/** One boot of the host of this number, from its first discover to the last byte of its ramdisk. */
export async function boot(site: BootSite, index: number): Promise<Booted> {
  const times = new Map<Stage, number>();
  const timed = async <Result>(stage: Stage, work: Promise<Result>): Promise<Result> => {
    const startedMs = performance.now();
    const result = await work;
    times.set(stage, performance.now() - startedMs);
    return result;
  };
  const folder = hyphenatedMac(index);
  await timed('dhcp', site.dhcp.exchange(index));
  const { givenUp } = await timed('loader', fetchLoader(site, `${folder}/snponly.efi`));
  await timed('dhcp of iPXE', site.dhcp.exchange(index));
  const get = (path: string) => fetchByHttp(site.httpPort, index, `/boot/${folder}/${path}`);
  const asked = fetchByHttp(site.httpPort, index, scriptPath(index));
  const script = (await timed('script', asked)).toString('latin1');
  if (!script.includes(`token-uid-${index} `)) throw new Error(`host ${index} got: ${script}`);
  await timed('kernel', get('files/kernel'));
  await timed('initrd', get('files/initrd'));
  return { times, givenUp };
}

function fetchLoader({ tftpPort }: BootSite, fileName: string) {
  const order = { fileName, transfers: 1, blockBytes, windowBlocks };
  return fetchTogether({ address: '127.0.0.1', port: tftpPort, ...order });
}

/** Where a host's boot script is. */
export function scriptPath(index: number): string {
  return `/boot/${hyphenatedMac(index)}/script.ipxe`;
}

function hyphenatedMac(index: number): string {
  const bytes = [0x52, 0x54, 0x00, 0x77, index >> 8, index & 0xff];
  return bytes.map((byte) => byte.toString(16).padStart(2, '0')).join('-');
}

/** Over a connection of its own, from an address of its own; rejects when it is not whole. */
export function fetchByHttp(port: number, index: number, path: string): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const localAddress = `127.1.${1 + (index >> 7)}.${1 + (index & 0x7f)}`;
    const sent = request({ host: '127.0.0.1', port, path, localAddress, agent: false });
    sent.on('error', reject);
    sent.on('response', (response) => {
      const kept: Buffer[] = [];
      let bytes = 0;
      response.on('data', (part: Buffer) => {
        bytes += part.length;
        if (bytes < 65_536) kept.push(part);
      });
      response.on('error', reject);
      response.on('end', () => {
        const expected = Number(response.headers['content-length']);
        if (response.statusCode === 200 && bytes === expected) resolve(Buffer.concat(kept));
        else reject(new Error(`${path}: ${response.statusCode}, ${bytes} of ${expected} bytes`));
      });
    });
    sent.end();
  });
}
