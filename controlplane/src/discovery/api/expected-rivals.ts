/**
 * Whether another line of the manifest names the same machine. A line that another replica writes
 * at the same moment is missed here: later both lines show a conflict.
 */
import { alreadyExists, type ExpectedHost, failedPrecondition } from '@rackwright/messages';
import type { RpcDependencies } from '../../call/ports.ts';
import type { FoundRecords } from '../../fleet-view/index.ts';
import { idOf } from '../../records/index.ts';
import { expectedLines, type KeptExpected, keysOfLine } from '../kept.ts';

/** The most lines of the manifest. */
const linesMax = 10_000;

/** Throws when the manifest is full, or another line names the same machine. */
export async function refuseRival(
  { fleetView }: Pick<RpcDependencies, 'fleetView'>,
  line: ExpectedHost,
): Promise<void> {
  const lines = await fleetView.collection(expectedLines);
  const ownId = idOf(line.name);
  if (lines.size >= linesMax && lines.get(ownId) === undefined) {
    throw failedPrecondition('TOO_MANY', `The manifest has ${linesMax} lines already.`);
  }
  for (const key of keysOfLine(line)) {
    const rival = [...lines.idsBy(key)].find((id) => id !== ownId);
    if (rival !== undefined) throw sameMachine(lines, rival, key);
  }
}

function sameMachine(lines: FoundRecords<KeptExpected>, rival: string, key: string): Error {
  const [kind] = key.split(' ', 1);
  const path = `expected_host.match.${kind === 'bmc' ? 'bmc_address' : kind}`;
  const name = lines.get(rival)?.expected.name;
  const description = `is that of ${name} too; each machine has one line`;
  return alreadyExists(`${path} ${description}.`, [{ field: path, description }]);
}
