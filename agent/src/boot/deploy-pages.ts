/**
 * The boot path's questions about hosts of deployments; all answers but a proof come from memory.
 */
import type { HostUid } from '@rackwright/messages';

export interface DeployPages {
  /**
   * A host reports that it runs the image that was deployed to it; `proved` once that is durable.
   * `from` is the address of the request.
   */
  phoneHome(
    id: string,
    token: string,
    from: string,
  ): Promise<'proved' | 'outdated' | 'wrong' | 'notDurable'>;
  /** The kernel, ramdisk and arguments of a host that runs without a disk. */
  netboot(hostUid: HostUid): NetbootBoot;
  /** Its first-boot data; false: the token is not its own. `root`: our URL as the host knows it. */
  seedFile(id: string, token: string, name: string, root: string): string | false | undefined;
}

export type NetbootBoot =
  | {
      readonly kind: 'ready';
      /** Hex of the SHA-256 of each. */
      readonly kernel: string;
      readonly initrds: readonly string[];
      /** Words that are safe in a script. */
      readonly kernelArguments: readonly string[];
      /** The path of the URL of its first-boot data; absent: it needs none. */
      readonly seedPath?: string;
    }
  /** Not here yet; for a person at the host's console. */
  | { readonly kind: 'waiting'; readonly text: string };
