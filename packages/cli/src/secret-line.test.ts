import { describe, expect, test } from 'vitest';
import { runOver } from './command-io.fixture.ts';
import { exitCodes } from './failure.ts';
import { typeSecret } from './secret-line.ts';

describe('a line that is not shown', () => {
  test.each([
    ['ab', 'c', 'abc'],
    ['ab', '\u007fc', 'ac'],
    ['a💾', '\b', 'a'],
    ['ab', '\u0015x', 'x'],
    ['ab', '\u001b[A\u001b[3~\t', 'ab'],
    ['ab', '\u0004', 'ab'],
    ['', '\u007f', ''],
  ])('is after %j and the keys %j: %j', (before, typed, text) => {
    expect(typeSecret(before, typed)).toEqual({ kind: 'open', text });
  });

  test('ends with Enter, and what follows is for the next line', () => {
    expect(typeSecret('a', 'b\rnext')).toEqual({ kind: 'ended', text: 'ab', rest: 'next' });
    expect(typeSecret('', '\n')).toEqual({ kind: 'ended', text: '', rest: '' });
  });

  test('is abandoned by Ctrl-C, and by Ctrl-D while it is empty', () => {
    expect(typeSecret('ab', 'c\u0003')).toEqual({ kind: 'abandoned', by: 'interrupt' });
    expect(typeSecret('', '\u0004')).toEqual({ kind: 'abandoned', by: 'end of input' });
  });
});

describe('a password on a terminal', () => {
  const create = ['credential', 'create', 'c1', '--username', 'root'];

  test('is asked for twice when a credential is made, and both have to be the same', async () => {
    const asked: string[] = [];
    const wrong = await runOver(create, { typed: ['one', 'two'], questions: asked });
    expect(asked).toEqual(['Password of root: ', 'The same again: ']);
    expect(wrong.err).toContain('the two passwords differ');
    expect(wrong.code).toBe(exitCodes.usage);
    // The next thing to go wrong is that no control plane is known.
    const right = await runOver(create, { typed: ['one', 'one'] });
    expect(right.err).toContain('the control plane is not known');
  });

  test('is asked for once when a credential changes', async () => {
    const asked: string[] = [];
    await runOver(['credential', 'update', 'c1'], { typed: ['one'], questions: asked });
    expect(asked).toEqual(['New password: ']);
  });

  test('is not asked for when it comes from a pipe or a file', async () => {
    const asked: string[] = [];
    await runOver(create, { input: 'secret\n', questions: asked });
    await runOver([...create, '--password-file', '/p'], { files: { '/p': 'x' }, questions: asked });
    expect(asked).toEqual([]);
  });

  test('is missing when the person gives up', async () => {
    const { err, code } = await runOver(create, { typed: ['one'] });
    expect(err).toContain('no password was given');
    expect(code).toBe(exitCodes.usage);
  });
});
