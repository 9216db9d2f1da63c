/** How the agent reaches a host's BMC: a narrow copy of the spec, without the secret. Pure. */
import { create } from '@bufbuild/protobuf';
import { agent, type BmcEndpoint, type BmcIdentity } from '@rackwright/messages';
import { protocolOf } from './protocols.ts';

/** `identity`: from the last verify; pins the certificate where the spec names none. */
export function accessTo(
  bmc: BmcEndpoint | undefined,
  identity: BmcIdentity | undefined,
  credentialVersion: bigint,
): agent.BmcAccess {
  return create(agent.BmcAccessSchema, {
    address: bmc?.address ?? '',
    ...(bmc?.port === undefined ? {} : { port: bmc.port }),
    ...(bmc?.cipherSuite === undefined ? {} : { cipherSuite: bmc.cipherSuite }),
    credential: bmc?.credential ?? '',
    credentialVersion,
    protocol: protocolOf(bmc?.protocol).id,
    ...(bmc?.webhook === undefined ? {} : { webhook: bmc.webhook }),
    certificateSha256: bmc?.certificateSha256 || (identity?.certificateSha256 ?? ''),
  });
}
