/**
 * Registry secrets that the agent of one session gets for its own downloads: prefetched images, and
 * images that hosts boot over the network.
 *
 * Invariant: each version is sent once in a session, and only where it may go.
 */
import { create } from '@bufbuild/protobuf';
import { agent, type RackId, type store as wire } from '@rackwright/messages';
import { noteGiven, openNamed, whyNotGiven } from '../../secrets/index.ts';
import type { SessionDependencies } from '../base/dependencies.ts';
import type { SessionSink } from '../base/sink.ts';

export class GivenSecrets {
  readonly #deps: SessionDependencies;
  readonly #rackId: RackId;
  readonly #send: SessionSink['send'];
  readonly #sentVersions = new Map<string, bigint>();

  constructor(deps: SessionDependencies, rackId: RackId, send: SessionSink['send']) {
    this.#deps = deps;
    this.#rackId = rackId;
    this.#send = send;
  }

  /** Whether this version of "credentials/C", or a later one, was sent to the agent. */
  has(name: string, version: bigint): boolean {
    const sent = this.#sentVersions.get(name);
    return sent !== undefined && sent >= version;
  }

  /** Sends the present version of "credentials/C"; returns why it cannot be sent. */
  async give(name: string): Promise<string | undefined> {
    const { store, hosts, audit } = this.#deps;
    const rack = `racks/${this.#rackId}`;
    const openCredential = (record: wire.CredentialRecord) => hosts.openCredential(record);
    try {
      const opened = await openNamed({ store, openCredential }, name, { rack });
      if (opened === undefined) return `${name} does not exist`;
      if (this.#sentVersions.get(name) === opened.version) return undefined;
      const value = create(agent.CredentialValueSchema, opened);
      this.#send({ case: 'credentialValue', value });
      this.#sentVersions.set(name, opened.version);
      noteGiven(audit, opened, `the agent of ${rack}`);
      return undefined;
    } catch (error) {
      return whyNotGiven(error);
    }
  }
}
