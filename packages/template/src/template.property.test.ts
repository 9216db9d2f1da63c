/** The parser throws nothing, positions are in the source, the same is rendered each time. */
import { StepState } from '@rackwright/messages';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { evaluate } from './expression/evaluate.ts';
import { parseExpression } from './expression/parse.ts';
import { printed } from './expression/print.ts';
import type { Expression } from './expression/syntax.ts';
import { scopeOf } from './hosts.fixture.ts';
import { conditionHolds, parseTemplate, renderTemplate } from './index.ts';
import type { Problem } from './problems.ts';

const whole = `description: Set the clock
timeout: 2h
variables:
  ntp: { type: string, default: "{{ host.rack }}.example.org" }
  often: { type: integer, default: 3 }
  mode: { type: choice, values: [one, two], default: one }
steps:
  - name: clock
    if: host.labels.role in ["worker", "spare"] and not (vars.mode == 'two')
    script: |
      ntpd -q -p {{ quote(vars.ntp) }}

        echo {{ json(host.disks) }} {{ run.number }}
    environment: { A: "b\\u0041{{ host.id }}", C: 'it''s {{ "}}" }}' }
    timeout: 5m
    retries: 2
    onFailure: tidy-up
  - name: check
    if: steps.clock.exitCode == 0 or steps.clock.state != "failed"
    webhook:
      url: https://x.example/{{ host.id }}
      body: >-
        folded
        {{ host.name }}

        text
  - { name: settle, wait: "{{ default(host.labels.wait, '5s') }}" }
handlers:
  - { name: tidy-up, script: "rm -f /run/x" }
`;

const marks = ['{{', '}}', '"', "'", ':', '- ', '\n', '  ', '&a ', '*a', '!t ', '|', '>', '#', '%'];
const more = ['[', ']', '{', '}', ',', '?', '\t', '\r', '\u0000', 'vars.', 'steps.', '0', '---\n'];

/** The template above with some places overwritten, removed or put in. */
const damaged = fc
  .array(
    fc.record({
      at: fc.nat(whole.length),
      drop: fc.nat(6),
      put: fc.oneof(
        fc.constantFrom(...marks, ...more),
        fc.string({ maxLength: 4, unit: 'grapheme' }),
      ),
    }),
    { minLength: 1, maxLength: 8 },
  )
  .map((changes) =>
    changes.reduce(
      (text, { at, drop, put }) => text.slice(0, at) + put + text.slice(at + drop),
      whole,
    ),
  );

/** Every problem has a place in the text, and a message. */
function checkPlaces(source: string, problems: readonly Problem[]): void {
  const lines = source.split('\n');
  expect(problems.length).toBeGreaterThan(0);
  for (const { line, column, message } of problems) {
    expect(line).toBeGreaterThanOrEqual(1);
    expect(line).toBeLessThanOrEqual(lines.length);
    expect(column).toBeGreaterThanOrEqual(1);
    expect(column).toBeLessThanOrEqual((lines[line - 1] ?? '').length + 1);
    expect(message).not.toBe('');
  }
}

describe('the parser', () => {
  test('reads what the others are made of', () => {
    expect(parseTemplate(whole)).toMatchObject({ kind: 'ok' });
  });

  test('throws nothing, and places every problem in the text', () => {
    fc.assert(
      fc.property(fc.oneof(damaged, fc.string({ unit: 'binary', maxLength: 200 })), (source) => {
        const parsed = parseTemplate(source);
        if (parsed.kind === 'bad') checkPlaces(source, parsed.problems);
      }),
      { numRuns: 400 },
    );
  });

  test('renders what it has read, or says what is missing, the same each time', () => {
    fc.assert(
      fc.property(
        damaged,
        fc.dictionary(fc.constantFrom('ntp', 'often', 'mode'), fc.string()),
        (source, given) => {
          const parsed = parseTemplate(source);
          if (parsed.kind === 'bad') return;
          const once = renderTemplate(parsed.template, scopeOf(given));
          const reread = parseTemplate(source);
          expect(reread.kind === 'ok' && renderTemplate(reread.template, scopeOf(given))).toEqual(
            once,
          );
          if (once.kind === 'bad') checkPlaces(source, once.problems);
          else for (const step of once.rendered.steps) conditionHolds(step.condition, new Map());
        },
      ),
      { numRuns: 300 },
    );
  });

  test('points at the very word that is wrong, however the text around it is quoted', () => {
    const quoting: readonly ((text: string) => string)[] = [
      (text) => `"a \\u00e4 \\\\ b\\tc ${text}"`,
      (text) => `'it''s '' ${text}'`,
      (text) => `plain ${text} text`,
      (text) => `plain\n      folded\n\n      ${text}`,
      (text) => `|\n      one\n\n        two ${text}\n`,
      (text) => `>-\n      one\n      two\n\n      ${text} three`,
      (text) => `"one\n      two \\\n      ${text}"`,
    ];
    for (const quote of quoting) {
      for (const newline of ['\n', '\r\n']) {
        const source = `steps:\n  - name: a\n    script: ${quote('{{ host.wrong }}')}\n`.replaceAll(
          '\n',
          newline,
        );
        const parsed = parseTemplate(source);
        if (parsed.kind === 'ok') throw new Error('nothing is wrong with it');
        const [{ line, column }, ...rest] = parsed.problems as [Problem, ...Problem[]];
        expect(rest).toEqual([]);
        expect(source.split('\n')[line - 1]?.slice(column - 1)).toMatch(/^host\.wrong/);
      }
    }
  });
});

const stepStates = {
  succeeded: StepState.SUCCEEDED,
  failed: StepState.FAILED,
  skipped: StepState.SKIPPED,
  pending: StepState.PENDING,
} as const;
const outcomes = fc.constantFrom('succeeded', 'failed', 'skipped', 'pending');
const operand = fc.oneof(
  fc.constant<Expression>({ kind: 'reference', path: ['steps', 'a', 'state'], at: 0 }),
  fc.constant<Expression>({ kind: 'reference', path: ['host', 'id'], at: 0 }),
  fc.constant<Expression>({ kind: 'reference', path: ['host', 'labels', 'none'], at: 0 }),
  outcomes.map<Expression>((value) => ({ kind: 'literal', value, at: 0 })),
  fc.string({ maxLength: 5 }).map<Expression>((value) => ({ kind: 'literal', value, at: 0 })),
);
const { condition } = fc.letrec<{ condition: Expression }>((tie) => ({
  condition: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.record({
      kind: fc.constant('compare' as const),
      operator: fc.constantFrom('==' as const, '!=' as const),
      left: operand,
      right: operand,
      at: fc.constant(0),
    }),
    fc.boolean().map((value) => ({ kind: 'literal' as const, value, at: 0 })),
    fc.record({ kind: fc.constant('not' as const), operand: tie('condition'), at: fc.constant(0) }),
    fc.record({
      kind: fc.constantFrom('and' as const, 'or' as const),
      left: tie('condition'),
      right: tie('condition'),
      at: fc.constant(0),
    }),
  ),
}));

const known = (path: readonly (string | number)[]) => ({
  value: path.join('.') === 'host.id' ? 'h1' : undefined,
});

describe('a condition', () => {
  test('a condition that is printed reads back as the same', () => {
    fc.assert(
      fc.property(condition, (expression) => {
        const text = printed(expression);
        const again = parseExpression(text, { charsMax: 100_000, depthMax: 100 });
        expect(again.kind === 'ok' && printed(again.expression)).toBe(text);
      }),
    );
  });

  test('comes to the same in one go as in two', () => {
    fc.assert(
      fc.property(condition, outcomes, (expression, state) => {
        const atOnce = evaluate(expression, (path) =>
          path[0] === 'steps' ? { value: state } : known(path),
        );
        const before = evaluate(expression, (path) => (path[0] === 'steps' ? 'open' : known(path)));
        const left = 'value' in before ? String(before.value === true) : printed(before.open);
        const outcome = { state: stepStates[state], exitCode: undefined, lastOutput: '' };
        expect(conditionHolds(left, new Map([['a', outcome]]))).toBe(
          'value' in atOnce && atOnce.value === true,
        );
      }),
      { numRuns: 1_000 },
    );
  });
});
