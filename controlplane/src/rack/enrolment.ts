/**
 * EnrolmentService, on the operators' port and without the admin token: the join token, or the
 * registered key, is the authorisation.
 */
import { agent, type BoundService, bind } from '@rackwright/messages';
import type { RpcDependencies } from '../call/ports.ts';
import { issueCertificate } from '../identity/index.ts';

type Dependencies = Pick<
  RpcDependencies,
  'store' | 'random' | 'identity' | 'log' | 'agentEndpoint' | 'rackKeys'
>;

/** The service over these dependencies. */
export function createEnrolmentService(deps: Dependencies): BoundService {
  return bind(agent.EnrolmentService, {
    issueCertificate: async (request, context) => {
      const trust = { writer: deps, identity: deps.identity, rackKeys: deps.rackKeys };
      const issued = await issueCertificate(trust, request);
      context.vouch?.();
      const rack = `racks/${issued.rackId}`;
      const how = request.joinToken === '' ? 'renewed by its key' : 'issued for a join token';
      deps.log.info({ rack, peer: context.peerAddress }, `agent certificate ${how}`);
      return {
        certificatePem: issued.certificatePem,
        caCertificatePem: deps.identity.caCertificatePem,
        rack,
        expireTime: issued.expireTime,
        issueTime: issued.issueTime,
        agentEndpoint: deps.agentEndpoint,
      };
    },
  });
}
