/** Warns of hosts in service whose image the agent could not fetch again. */
import { type CredentialName, FaultSeverity, HostState } from '@rackwright/messages';
import { clearFault, setFault } from '../pass/fault.ts';
import type { Pass } from '../pass/pass.ts';
import { netbootProblem } from './deployment.ts';

const netbootImage = 'netbootImageAccess';
const versionsOfNone: ReadonlyMap<CredentialName, bigint> = new Map();

/** The host boots the image in the agent's cache, as long as it is there; a person should know. */
export function noteNetbootAccess(pass: Pass): void {
  const { snapshot, record, status } = pass;
  const versions = snapshot.registryCredentials ?? versionsOfNone;
  const problem = netbootProblem(record, snapshot.fleet, versions);
  if (problem === undefined || status.state !== HostState.PROVISIONED) {
    clearFault(pass, netbootImage);
    return;
  }
  const text =
    'it boots over the network what the agent of its rack has kept, and could not fetch that ' +
    `again: ${problem}`;
  setFault(pass, netbootImage, text, { severity: FaultSeverity.WARNING });
}
