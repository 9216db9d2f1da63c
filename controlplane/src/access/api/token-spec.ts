/** Validation of a token that is to be created. */
import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  type CreateTokenRequest,
  invalidArgument,
  Role,
  type Token,
  type TokenId,
} from '@rackwright/messages';
import { storeKey } from '@rackwright/store';
import { idProblem, isKnown, nameProblem, parseName } from '../../call/names.ts';
import type { RpcDependencies } from '../../call/ports.ts';
import { checkRequestId, controlCharacters } from '../../call/texts.ts';
import { quote, Violations } from '../../call/violations.ts';
import { orUnavailable } from '../../records/index.ts';
import { firstTokenId } from '../index.ts';

const dayMs = 86_400_000;
/** The longest lifetime of a token. */
const lifeDaysMax = 400;
const purposeCharsMax = 200;
const racksMax = 64;
const poolsMax = 64;
const poolCharsMax = 63;

/** The id in "tokens/TOKEN". Throws `invalidArgument`. */
export function requireTokenName(name: string): TokenId {
  const tokenId = parseName('tokens', name);
  if (tokenId !== undefined) return tokenId;
  const description = `is ${quote(name)}; it must name a token, as in "tokens/ci"`;
  throw invalidArgument([{ field: 'name', description }]);
}

/** The id of the token. Throws `invalidArgument` with every violation. */
export async function checkToken(
  deps: RpcDependencies,
  { tokenId, requestId }: CreateTokenRequest,
  token: Token,
): Promise<TokenId> {
  const violations = new Violations();
  violations.addIf('token_id', idProblem(tokenId));
  if (tokenId === firstTokenId) violations.add('token_id', 'is that of the first token');
  checkRequestId(requestId, violations);
  if (token.role === Role.UNSPECIFIED || !isKnown(Role, token.role)) {
    violations.add('token.role', 'must be viewer, operator or admin');
  }
  checkExpiry(deps, token, violations);
  if (token.purpose.length > purposeCharsMax || controlCharacters.test(token.purpose)) {
    const wanted = `at most ${purposeCharsMax} characters without control characters`;
    violations.add('token.purpose', `must have ${wanted}`);
  }
  await checkScope(deps, token, violations);
  violations.throwIfAny();
  return requireTokenName(`tokens/${tokenId}`);
}

function checkExpiry({ clock }: RpcDependencies, token: Token, violations: Violations): void {
  const { expireTime } = token;
  if (expireTime === undefined) {
    violations.add('token.expire_time', `is missing; give one, at most ${lifeDaysMax} days ahead`);
    return;
  }
  const leftMs = timestampMs(expireTime) - clock.nowMs();
  if (leftMs > 0 && leftMs <= lifeDaysMax * dayMs) return;
  const problem = leftMs > 0 ? `lies more than ${lifeDaysMax} days ahead` : 'lies in the past';
  violations.add('token.expire_time', `${problem}; give a time in the next ${lifeDaysMax} days`);
}

async function checkScope(
  { store }: RpcDependencies,
  { scope }: Token,
  violations: Violations,
): Promise<void> {
  const { racks = [], pools = [] } = scope ?? {};
  if (racks.length > racksMax) {
    violations.add('token.scope.racks', `has ${racks.length} racks; at most ${racksMax} fit`);
  }
  if (pools.length > poolsMax) {
    violations.add('token.scope.pools', `has ${pools.length} pools; at most ${poolsMax} fit`);
  }
  for (const [index, rack] of racks.slice(0, racksMax).entries()) {
    const field = `token.scope.racks[${index}]`;
    const problem = nameProblem('racks', rack);
    violations.addIf(field, problem);
    if (problem !== undefined) continue;
    const found = await orUnavailable(store.get(storeKey(...rack.split('/'))));
    if (found.kind === 'absent') violations.add(field, `names ${rack}, which does not exist`);
  }
  for (const [index, pool] of pools.slice(0, poolsMax).entries()) {
    const isFine = pool !== '' && pool.length <= poolCharsMax && !controlCharacters.test(pool);
    if (isFine) continue;
    const field = `token.scope.pools[${index}]`;
    violations.add(field, `must be a value of the label "pool", 1 to ${poolCharsMax} characters`);
  }
}
