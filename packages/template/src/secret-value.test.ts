import { describe, expect, test } from 'vitest';
import { scopeOf } from './hosts.fixture.ts';
import { parseTemplate, renderTemplate } from './index.ts';

function problemsOf(source: string): string[] {
  const parsed = parseTemplate(source);
  return parsed.kind === 'ok' ? [] : parsed.problems.map(({ message }) => message);
}

function argumentsOf(source: string): Readonly<Record<string, string>> {
  const parsed = parseTemplate(source);
  if (parsed.kind === 'bad') throw new Error(JSON.stringify(parsed.problems));
  const result = renderTemplate(parsed.template, scopeOf({}));
  if (result.kind === 'bad') throw new Error(JSON.stringify(result.problems));
  return result.rendered.steps[0]?.arguments ?? {};
}

const script = (rest: string) => `steps:\n  - { name: a, script: env, ${rest} }\n`;
const webhook = (headers: string) =>
  `steps:\n  - { name: a, webhook: { url: https://x.example/, headers: { ${headers} } } }\n`;

describe('a value that names a credential', () => {
  test('goes into `secretEnvironment` under its name, apart from plain texts', () => {
    const given = argumentsOf(
      script(
        'environment: { A: text, TOKEN: { credential: hub }, ' +
          'WHO: { credential: hub, part: username } }',
      ),
    );
    expect(JSON.parse(given['environment'] ?? '')).toEqual({ A: 'text' });
    expect(JSON.parse(given['secretEnvironment'] ?? '')).toEqual({
      TOKEN: { credential: 'credentials/hub', part: 'password' },
      WHO: { credential: 'credentials/hub', part: 'username' },
    });
  });

  test('a value of a header may have something before the name', () => {
    const given = argumentsOf(webhook('authorization: { credential: hooks, prefix: "Bearer " }'));
    expect(JSON.parse(given['secretHeaders'] ?? '')).toEqual({
      authorization: { credential: 'credentials/hooks', part: 'password', prefix: 'Bearer ' },
    });
  });

  test('is not there where nobody names one', () => {
    expect(argumentsOf(script('environment: { A: text }'))).not.toHaveProperty('secretEnvironment');
  });

  test.each([
    [script('environment: { A: { credential: "Not an id" } }'), 'must be the id of a credential'],
    [script('environment: { A: { credential: "{{ host.id }}" } }'), 'takes no {{ … }}'],
    [script('environment: { A: { part: password } }'), 'names no credential'],
    [script('environment: { A: {} }'), 'names no credential'],
    [
      script('environment: { A: { credential: a, part: key } }'),
      'must be one of password, username',
    ],
    [script('environment: { A: { credential: a, prefix: x } }'), 'no field "prefix" here'],
    [script('environment: { PATH: { credential: a } }'), 'decides how programs start'],
    [script('environment: { LD_PRELOAD: { credential: a } }'), 'decides how programs start'],
    ...['_', 'PWD', 'OLDPWD', 'SHLVL', 'PPID', 'OPTIND', 'BASH_COMMAND'].map((name) => [
      script(`environment: { ${name}: { credential: a } }`),
      'shells set by themselves',
    ]),
    [script('environment: { RACKWRIGHT_A: { credential: a } }'), 'is no name here'],
    [script('environment: { A: { credential: a } }, handOff: true'), 'may hold no secret'],
    [webhook('host: { credential: a }'), 'is no name here'],
    [webhook('x: { credential: a, prefix: { a: b } }'), 'must be a text'],
  ])('is refused when it is none: %#', (source, text) => {
    expect(problemsOf(source).join('\n')).toContain(text);
  });
});
