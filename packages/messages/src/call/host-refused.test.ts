import { expect, test } from 'vitest';
import { hostRefusalNames, hostRefusalWord } from '../failures.ts';
import { HostRefusal } from '../gen/rackwright/v1/failure_pb.ts';
import { hostRefused } from './host-refused.ts';

test('every refusal of a host stands in its metadata as the protocol calls it', () => {
  const words = hostRefusalNames.map((name) => {
    const { error } = hostRefused(name, 'no', 'hosts/h1');
    expect(error).toMatchObject({
      ...{ kind: 'failedPrecondition', reason: 'HOST_REFUSED' },
      metadata: { resource: 'hosts/h1', refusal: hostRefusalWord(name) },
    });
    return hostRefusalWord(name);
  });
  const values = Object.keys(HostRefusal).filter((key) => /[A-Z]/.test(key));
  expect(words).toEqual(values.filter((key) => key !== 'UNSPECIFIED'));
});
