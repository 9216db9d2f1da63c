import { expect, test } from 'vitest';
import { checkServerVersion } from './server-version.ts';

for (const version of ['2.10.27', '2.10.28', '2.11.0', '2.15.1', '3.0.0', '2.11.0-RC.1']) {
  test(`accepts nats-server ${version}`, () => {
    expect(() => checkServerVersion(version, 'n1')).not.toThrow();
  });
}

for (const version of ['2.9.10', '2.10.26', '2.10.3', '2.10.27-RC.1', '1.99.99', '', 'v3', '3']) {
  test(`refuses nats-server ${JSON.stringify(version)}, naming the server and the floor`, () => {
    expect(() => checkServerVersion(version, 'n1')).toThrow(/n1 .*2\.10\.27/);
  });
}
