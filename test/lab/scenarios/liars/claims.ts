/** What Rackwright says of a host and its disks, asked with the operators' command. */
import { enumFromJson } from '@bufbuild/protobuf';
import { parseStatement } from '@rackwright/erasure';
import { FailureTypeSchema, failureWord } from '@rackwright/messages';
import type { Site } from '../../site.ts';
import type { Claims } from './judge.ts';

interface CertificateList {
  readonly erasureCertificates?: readonly {
    readonly name: string;
    readonly statement: string;
    readonly powerCycleProof?: string;
  }[];
}

/** Everything that is claimed of the host now. */
export async function readClaims({ stack, watch }: Site, host: string): Promise<Claims> {
  const listed = JSON.parse(
    await stack.cli(['erasure', 'list', '--host', host, '-o', 'json']),
  ) as CertificateList;
  const statements = (listed.erasureCertificates ?? [])
    .filter(({ powerCycleProof }) => powerCycleProof !== 'POWER_CYCLE_PROOF_REFUTED')
    .map(({ statement }) => parseStatement(Buffer.from(statement, 'base64')))
    .filter(({ level }) => level !== null);
  const status = watch.latest(host)?.status;
  const failure = status?.lastError?.failure;
  const type = failure === undefined ? '' : nameOf(failure.type);
  const texts = [
    failure === undefined ? '' : `${type}: ${failure.message} ${failure.detail ?? ''}`,
    await stack.cli(['host', 'explain', host]),
  ];
  return {
    isAvailable: status?.state === 'HOST_STATE_AVAILABLE',
    statements,
    text: texts.join('\n'),
  };
}

/** "FAILURE_TYPE_NOT_ERASED", as JSON has it → "notErased" */
function nameOf(type: string): string {
  return failureWord(enumFromJson(FailureTypeSchema, type));
}
