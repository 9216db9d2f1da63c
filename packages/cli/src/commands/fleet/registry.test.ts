import { create } from '@bufbuild/protobuf';
import { ImageRegistrySchema } from '@rackwright/messages';
import { expect, test } from 'vitest';
import type { CommandIo } from '../../command-io.ts';
import { changeOf, withChange } from './registry.ts';

const io = {} as CommandIo;
const other = create(ImageRegistrySchema, { registry: 'b.example', credential: 'credentials/b' });
const before = create(ImageRegistrySchema, {
  ...{ registry: 'a.example', plainHttp: true, caPem: 'PEM', tokenService: 'auth.example' },
  mirrors: [{ registry: 'mirror.example' }],
});

test('the fields of a registry that no flag names stay, as advice expects', async () => {
  const said = await changeOf(io, { credential: 'pull' });
  const [first, changed] = withChange([before, other], 'a.example', said);
  expect(first).toBe(other);
  expect(changed).toMatchObject({
    ...{ registry: 'a.example', credential: 'credentials/pull', plainHttp: true, caPem: 'PEM' },
    mirrors: [{ registry: 'mirror.example' }],
  });
  expect(before.credential).toBe('');
});

test('the word none takes a field back, and a new registry has only its flags', async () => {
  const none = {
    ...{ credential: 'none', plainHttp: false, authority: 'none', mirror: ['none'] },
    tokenService: 'none',
  };
  const [taken] = withChange([before], 'a.example', await changeOf(io, none));
  expect(taken).toEqual(create(ImageRegistrySchema, { registry: 'a.example' }));
  const [, made] = withChange([before], 'c.example', await changeOf(io, { plainHttp: true }));
  expect(made).toEqual(create(ImageRegistrySchema, { registry: 'c.example', plainHttp: true }));
});

test('a token service is named for a registry, and for a mirror', async () => {
  const said = await changeOf(io, {
    tokenService: 'auth.example:8443',
    mirror: ['mirror.example,credential=m,token-service=auth.mirror.example'],
  });
  expect(withChange([], 'd.example', said)[0]).toMatchObject({
    tokenService: 'auth.example:8443',
    mirrors: [{ credential: 'credentials/m', tokenService: 'auth.mirror.example' }],
  });
});
