import type { DescService } from '@bufbuild/protobuf';
import * as all from '@rackwright/messages';
import { expect, test } from 'vitest';
import { limitsOfMethod } from './method-limits.ts';

function isService(value: unknown): value is DescService {
  return typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'service';
}

const published: readonly unknown[] = [all, all.agent, all.runner].flatMap(Object.values);
const services = published.filter(isService);

test('every method of every service that is published has limits', () => {
  expect(services.length).toBeGreaterThan(15);
  for (const service of services) {
    for (const method of service.methods) {
      const { first, later } = limitsOfMethod(method);
      expect(first.bytesMax, method.name).toBeLessThanOrEqual(later.bytesMax);
    }
  }
});

test('a caller who has shown nothing gets 16 KiB, and its unknown fields are passed over', () => {
  const open = ['Check', 'List', 'Watch', 'IssueCertificate', 'ServerReflectionInfo'];
  const methods = services.flatMap((service) => [...service.methods]);
  const runners = all.runner.RunnerService.methods;
  for (const method of [...methods.filter(({ name }) => open.includes(name)), ...runners]) {
    const { first } = limitsOfMethod(method);
    expect([method.name, first.bytesMax, first.unknownFields]).toEqual([
      method.name,
      16 * 1024,
      'skipped',
    ]);
  }
});

test('a service without a table is not served', () => {
  const [method] = all.Health.methods;
  if (method === undefined) throw new Error('Health has no method');
  const parent = { ...method.parent, typeName: 'x.New' };
  expect(() => limitsOfMethod({ ...method, parent })).toThrow('x.New.Check has no limits');
});
