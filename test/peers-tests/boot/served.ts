/** Our boot path on loopback with files of given sizes, for clients that others wrote. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BootConfig, type BootServices, startBoot } from '@rackwright/agent';
import { nodeClock, nodeDisk, nodeHttp, nodeLog, nodeUdp } from '@rackwright/platform/node';

export interface Served {
  readonly services: BootServices;
  readonly contents: ReadonlyMap<string, Uint8Array>;
  /** A folder for what clients fetch. */
  readonly folder: string;
  close(): Promise<void>;
}

/**
 * Serves `f<size>` for each size, by TFTP and HTTP, and kernel and ramdisk by HTTP only.
 * Address 0.0.0.0 of TFTP is that of 127.0.0.1 and 127.0.0.2.
 */
export async function serve(
  sizes: readonly number[],
  tftp: Partial<BootConfig['tftp']> = {},
): Promise<Served> {
  const folder = await mkdtemp(join(tmpdir(), 'rackwright-served-'));
  const contents = new Map<string, Uint8Array>();
  const named = async (name: string, size: number) => {
    const bytes = Uint8Array.from({ length: size }, (_, at) => (at * 131 + (at >> 9)) & 0xff);
    contents.set(name, bytes);
    await writeFile(join(folder, name), bytes);
    return { name, path: join(folder, name) };
  };
  const loaderFiles = await Promise.all(sizes.map((size) => named(`f${size}`, size)));
  const files = [await named('vmlinuz', 200_000), await named('initrd', 300_000)];
  const services = await startBoot(
    {
      interfaces: [{ serverAddress: '127.0.0.1', dhcp: { mode: 'off' } }],
      tftp: { address: '127.0.0.1', port: 0, ...tftp },
      http: { address: '127.0.0.1', port: 0 },
      loaders: {},
      loaderFiles,
      files,
      runner: {
        kernel: 'vmlinuz',
        initrd: 'initrd',
        agentPort: 7443,
        fingerprint: '00'.repeat(32),
        kernelArguments: [],
      },
    },
    {
      udp: nodeUdp(),
      http: nodeHttp(),
      disk: nodeDisk(),
      clock: nodeClock(),
      log: nodeLog('error'),
      memory: () => ({ snapshot: { generation: 1, hosts: [] }, grants: [] }),
      ownAddresses: () => new Map([['lo', ['127.0.0.1', '127.0.0.2']]]),
      onNetboot: () => {},
    },
  );
  const close = async () => {
    await services.close();
    await rm(folder, { recursive: true });
  };
  return { services, contents, folder, close };
}
