/** SecretsService: the key that seals secrets, only by its id. */
import {
  type BoundService,
  bind,
  failedPrecondition,
  type RotateSecretsKeyRequest,
  type SecretsKey,
  SecretsService,
} from '@rackwright/messages';
import type { RpcDependencies } from '../../call/ports.ts';
import { checkRequestId } from '../../call/texts.ts';
import { Violations } from '../../call/violations.ts';

/** The service over these dependencies. */
export function createSecretsService(deps: RpcDependencies): BoundService {
  return bind(SecretsService, {
    getSecretsKey: () => keeper(deps).status(),
    rotateSecretsKey: (request) => rotate(deps, request),
  });
}

function keeper({ secretsKeeper }: RpcDependencies) {
  if (secretsKeeper !== undefined) return secretsKeeper;
  throw failedPrecondition('NO_SECRETS_KEY', 'This control plane keeps no secrets key.');
}

function rotate(deps: RpcDependencies, request: RotateSecretsKeyRequest): Promise<SecretsKey> {
  const violations = new Violations();
  checkRequestId(request.requestId, violations);
  violations.throwIfAny();
  return keeper(deps).rotate(deps.actor, request.requestId);
}
