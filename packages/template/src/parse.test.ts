import { describe, expect, test } from 'vitest';
import { parseTemplate } from './parse.ts';

/** The problems of a text, as "line:column path: message". */
function problemsOf(source: string): string[] {
  const parsed = parseTemplate(source);
  if (parsed.kind === 'ok') return [];
  return parsed.problems.map(
    ({ line, column, path, message }) => `${line}:${column} ${path}: ${message}`,
  );
}

/** One step with these fields, in flow style. */
function step(fields: string): string {
  return `steps:\n  - { name: a, ${fields} }\n`;
}

const image = `registry.example.org/tools/check@sha256:${'0a'.repeat(32)}`;

describe('a template is refused, with line, column and what would be right', () => {
  test.each([
    ['', ['1:1 : is empty; a template has at least steps']],
    ['# nothing\n', ['1:1 : is empty; a template has at least steps']],
    ['- a\n', ['1:1 : must be a map of names and values, not a list']],
    ['description: x\n', ['1:1 : has no steps; a template has at least one']],
    ['steps: []\n', ['1:1 steps: is empty; a template has at least one step']],
    ['steps: {}\n', ['1:8 steps: must be a list, not a map']],
    ['a: [\n', [expect.stringMatching(/^2:1 : Flow sequence in block collection/)]],
    [
      'steps:\n  - { name: a, wait: 1s }\n---\n{}\n',
      ['3:1 : is a second document; a file holds one template'],
    ],
    ['%YAML 1.1\n---\nsteps: []\n', ['1:1 : "%YAML 1.1" is not taken; write plain YAML 1.2']],
    [
      'steps:\n  - &x { name: a, wait: 1s }\n',
      ['2:8 steps[0]: &x is an anchor; anchors and aliases are not taken'],
    ],
    [
      'description: !!binary aGk=\nsteps: [{ name: a, wait: 1s }]\n',
      [expect.stringMatching(/^1:23 description: .*is a tag; tags are not taken$/)],
    ],
    [
      '1: x\nsteps: [{ name: a, wait: 1s }]\n',
      ['1:1 : has the key "1", which is no text; put it in quotes'],
    ],
    [
      'description: 12\nsteps: [{ name: a, wait: 1s }]\n',
      ['1:14 description: must be a text, not a whole number; put it in quotes: "12"'],
    ],
    [
      'description: "a\\0"\nsteps: [{ name: a, wait: 1s }]\n',
      ['1:14 description: holds the character U+0000; only texts are taken'],
    ],
    [
      'timeout: 8d\nsteps: [{ name: a, wait: 1s }]\n',
      ['1:10 timeout: must be a time as "90s", "5m" or "2h"'],
    ],
    ['timeout: 169h\nsteps: [{ name: a, wait: 1s }]\n', ['1:10 timeout: must be from 1s to 168h']],
    [
      'step: []\n',
      [
        '1:1 step: there is no field "step" here; did you mean "steps"?',
        '1:1 : has no steps; a template has at least one',
      ],
    ],
  ])('a template of %j is refused', (source, problems) => {
    expect(problemsOf(source)).toEqual(problems);
  });

  test.each([
    ['wait: 0s', '2:22 steps[0].wait: must be from 1s to 24h'],
    ['wait: 25h', '2:22 steps[0].wait: must be from 1s to 24h'],
    ['wait: 5', '2:22 steps[0].wait: must be a text, not a whole number; put it in quotes: "5"'],
    [
      'wait: 5s, retries: 11',
      '2:35 steps[0].retries: must be a whole number from 0 to 10, not "11"',
    ],
    [
      'wait: 5s, retries: -1',
      '2:35 steps[0].retries: must be a whole number from 0 to 10, not "-1"',
    ],
    ['wait: 5s, timeout: 25h', '2:35 steps[0].timeout: must be from 1s to 24h'],
    ['wait: 5s, wait: 6s', '2:26 steps[0].wait: "wait" is given twice'],
    [
      'wait: 5s, hold: x',
      '2:26 steps[0]: has wait and hold; a step does one thing, so make several steps of it',
    ],
    [
      'wait: 5s, interpreter: /bin/sh',
      '2:26 steps[0].interpreter: interpreter goes with script, not with wait',
    ],
    [
      'wait: 5s, onFailure: stop',
      '2:37 steps[0].onFailure: there is no handler "stop"; there are fail, continue, hold',
    ],
    [
      'wait: 5s, onFailure: a',
      '2:37 steps[0].onFailure: "a" is a step; what steps call stands under handlers',
    ],
    ['script: "  "', '2:24 steps[0].script: must not be empty'],
    [
      'script: x, interpreter: /bin/bash',
      '2:40 steps[0].interpreter: must be one of /bin/sh, /usr/bin/node, not "/bin/bash"',
    ],
    [
      'script: x, environment: { 1A: x }',
      expect.stringMatching(
        /^2:42 steps\[0\]\.environment\.1A: "1A" is no name here; it has letters/,
      ),
    ],
    ['script: x, idempotent: yes', '2:39 steps[0].idempotent: must be true or false, not a text'],
    [
      'script: {{ vars.x }}',
      '2:25 steps[0].script: has a map as a key; put a text with {{ … }} in quotes',
    ],
    [
      'command: { image: "a/b:1" }',
      expect.stringMatching(
        /^2:34 steps\[0\]\.command\.image: must name the image by digest, for a tag/,
      ),
    ],
    [
      `command: { image: "${image}", argument: [] }`,
      expect.stringMatching(/no field "argument" here; did you mean "arguments"\?$/),
    ],
    ['command: {}', '2:16 steps[0].command: has no image; it is required'],
    [
      'file: { path: x, content: "" }',
      expect.stringMatching(/^2:30 steps\[0\]\.file\.path: must be the whole path/),
    ],
    ['file: { path: /a/../b, content: "" }', expect.stringMatching(/path: must be the whole path/)],
    [
      'file: { path: /a, content: "?", encoding: base64 }',
      expect.stringMatching(/content: must be base64/),
    ],
    [
      'file: { path: /a, content: "", mode: 644 }',
      '2:53 steps[0].file.mode: must be a mode in octal digits, as "0644"',
    ],
    [
      'file: { path: /a, content: "", partition: 1 }',
      '2:47 steps[0].file.partition: goes with disk only; name the disk too',
    ],
    [
      'file: { path: /a, content: "", disk: D, filesystem: xfs, partition: 0 }',
      expect.stringMatching(/must be the number of a partition, 1 to 128/),
    ],
    [
      'file: { path: /a, content: "", disk: D, partition: 1, filesystem: xfs }, destructive: false',
      '2:102 steps[0].destructive: cannot be false: a file on a disk always counts as destructive',
    ],
    [
      'file: { path: /a, content: "", disk: D, partition: 1 }',
      '2:47 steps[0].file.disk: goes with partition and filesystem; filesystem is missing',
    ],
    [
      'webhook: { url: "https://x.example", headers: { Host: y, te: z } }',
      expect.stringMatching(/^2:64 .*"Host" is no name here; it has letters, digits and "-", and/),
      expect.stringMatching(/"te" is no name here/),
    ],
    [
      'webhook: { url: "https://x.example", headers: { a: "é" } }',
      expect.stringMatching(/^2:67 .*must be at most 2048 printable ASCII characters$/),
    ],
    ['script: x, environment: { RACKWRIGHT_X: y }', expect.stringMatching(/is no name here/)],
    [
      `command: { image: "tools/check@sha256:${'0a'.repeat(32)}" }`,
      expect.stringMatching(/is no image reference; it has the form registry/),
    ],
    ['power: up', '2:23 steps[0].power: must be one of off, on, reboot, disk, not "up"'],
    [
      'power: off, handOff: true',
      '2:28 steps[0].handOff: handOff goes with script, command, not with power',
    ],
    [
      'bmc: clear',
      '2:21 steps[0].bmc: must be a step of the BMC, as management.clear_event_log, not "clear"',
    ],
    ['hold: ""', '2:22 steps[0].hold: must not be empty'],
    ['webhook: { url: "ftp://x" }', expect.stringMatching(/url: must be an address as https:/)],
    [
      'webhook: { url: "https://a:b@x.example" }',
      expect.stringMatching(/must hold no user name and no password/),
    ],
    [
      'webhook: { url: "https://x.example", method: GET }',
      expect.stringMatching(/must be one of POST, PUT, not "GET"/),
    ],
    [
      'retries: 1',
      expect.stringMatching(/^2:5 steps\[0\]: does nothing; give it one of script, command, file/),
    ],
    ['if: 1, wait: 1s', '2:20 steps[0].if: must be true or false, and this is a whole number'],
    [
      'if: "{{ true }}", wait: 1s',
      '2:21 steps[0].if: is an expression already; leave out {{ and }}',
    ],
  ])('a step with "%s" is refused', (fields, ...problems) => {
    expect(problemsOf(step(fields))).toEqual(problems);
  });

  test.each([
    ['host.serail', '"serail"; did you mean "serial"?'],
    ['hots.id', 'there is no "hots"; did you mean "host"?'],
    ['nto', 'there is no "nto"; there are host, vars, run, steps'],
    ['ntp', 'there is no "ntp"; write vars.ntp'],
    ['vars.nto', 'there is no variable "nto"; did you mean "ntp"?'],
    ['host.labels', 'host.labels is no value; name one, as host.labels.role'],
    ['host.disks.serial', 'host.disks is a list; write host.disks[0].serial'],
    ['host.disks[0].sn', 'host.disks[0] has no "sn"'],
    ['host.bootMacs', 'is no text; use join'],
    ['host.bmc', 'host.bmc is no value; name a field; there is address'],
    ['run.state', 'run has no "state"; there is number'],
    ['steps.b.state', 'how steps end is known only in the "if" of later steps'],
    ['quote(1)', 'quote takes a text, not a whole number'],
    ['qoute(host.id)', 'there is no function "qoute"; did you mean "quote"?'],
    ['default(host.id)', 'default takes 2 arguments, and 1 are given'],
    ['default(host.id, 1)', 'default takes arguments of one type'],
    ['host.id = "x"', 'to compare write =='],
    ['host.id == 1', '== compares a text and a whole number, which are never equal'],
    ['host.id < "b"', '< compares numbers, not a text and a text'],
    ['"x" in host.id', '"in" looks for a value in a list of such values'],
    ['not host.id', '"not" goes with true or false, and this is a text; compare it'],
    ['"x', 'the text that begins here has no closing "'],
    ['(1', 'has no closing )'],
    ['', 'ends too early; a value is wanted'],
    ['host.id host.id', '"host" is not expected here'],
    ['1.5', 'a number is whole, a text stands in quotes'],
    [`${'('.repeat(40)}1${')'.repeat(40)}`, 'is nested too deeply'],
    [`"${'x'.repeat(1_100)}"`, 'an expression has at most 1000'],
  ])('a template with {{ %s }} is refused', (expression, message) => {
    const source = `variables:
  ntp: {}
steps:
  - { name: b, wait: 1s }
  - name: a
    script: |
      echo one
      echo {{ ${expression} }}
`;
    const problems = problemsOf(source);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(message);
    expect(problems[0]).toMatch(/^8:\d+ steps\[1\]\.script: /);
  });

  test.each([
    ['steps.b.state == "done"', 'no step is ever "done"'],
    ['steps.b.state in ["failed", "skiped"]', 'no step is ever "skiped"; did you mean "skipped"?'],
    ['steps.a.exitCode == 0', '"a" is this step; it has not ended yet'],
    ['steps.z.exitCode == 0', 'the step "z" comes later; only steps before this one have ended'],
    ['steps.h.exitCode == 0', '"h" is a handler; only steps can be asked about'],
    ['steps.bb.exitCode == 0', 'there is no step "bb" before this one; there is b'],
    ['steps.b.exit == 0', 'steps.b has no "exit"; did you mean "exitCode"?'],
    ['steps.b', 'steps.b is no value; name a field; there are state, exitCode, output'],
    ['steps.b.exitCode in [0, "1"]', 'a list holds only texts, or only whole numbers'],
  ])('a step with the condition "%s" is refused', (condition, message) => {
    const source = `steps:
  - { name: b, wait: 1s }
  - name: a
    if: ${condition}
    wait: 1s
  - { name: z, wait: 1s }
handlers:
  - { name: h, if: steps.z.state == "failed", wait: 1s }
`;
    const problems = problemsOf(source);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(message);
    expect(problems[0]).toMatch(/^4:\d+ steps\[1\]\.if: /);
  });

  test('names that are taken, missing or no names are refused', () => {
    const source = `steps:
  - { name: a, wait: 1s }
  - { name: a, wait: 1s }
  - { wait: 1s }
  - { name: A, wait: 1s }
handlers:
  - { name: a, wait: 1s }
  - { name: hold, wait: 1s }
`;
    expect(problemsOf(source)).toEqual([
      '3:13 steps[1].name: steps[0] is called "a" already',
      '4:5 steps[2]: has no name',
      expect.stringMatching(/^5:13 steps\[3\]\.name: must have 1 to 63 characters of a-z/),
      '7:13 handlers[0].name: steps[0] is called "a" already',
      '8:13 handlers[1].name: "hold" means what follows a step, so none has it',
    ]);
  });

  test('variables that use themselves, and handlers that call each other, are refused', () => {
    const source = `variables:
  a: { default: "{{ vars.b }}" }
  b: { default: "{{ vars.c }}x" }
  c: { default: "{{ lower(vars.a) }}" }
  d: { default: "{{ vars.d }}" }
  e: { default: "{{ vars.a }}" }
steps:
  - { name: s, wait: 1s, onFailure: f }
handlers:
  - { name: f, wait: 1s, onFailure: g }
  - { name: g, wait: 1s, onFailure: fail, onTimeout: f }
  - { name: h, wait: 1s, onTimeout: h }
`;
    expect(problemsOf(source)).toEqual([
      '2:17 variables.a.default: the default uses itself: a → b → c → a',
      '5:17 variables.d.default: the default uses itself: d → d',
      '10:37 handlers[0].onFailure: handlers call each other: f → g → f',
      '12:37 handlers[2].onTimeout: handlers call each other: h → h',
    ]);
  });

  test('variables that are declared wrongly are refused', () => {
    const source = `variables:
  "a b": {}
  i: { type: int }
  j: { type: integer, default: x }
  k: { type: boolean, default: true }
  l: { type: choice }
  m: { type: choice, values: [a, b], default: c }
  n: { values: [a] }
  o: { type: duration, default: 5 }
  p: text
steps: [{ name: a, wait: 1s }]
`;
    expect(problemsOf(source)).toEqual([
      expect.stringMatching(/^2:3 variables\.a b: "a b" is no name for a variable/),
      expect.stringMatching(/^3:14 variables\.i\.type: .*, not "int"; did you mean "integer"\?$/),
      '4:32 variables.j.default: must be a whole number',
      '6:3 variables.l: is a choice; values must list what it may be',
      expect.stringMatching(/^7:47 variables\.m\.default: must be one of a, b/),
      '8:8 variables.n.values: goes with the type choice only',
      '9:33 variables.o.default: must be a text, not a whole number; put it in quotes: "5"',
      '10:6 variables.p: must be a map of names and values, not a text',
    ]);
  });

  test('all problems are told at once, in the order of the text, up to a limit', () => {
    const wrong = Array.from(
      { length: 90 },
      (_, at) => `  - { name: a${at}, wait: x, retries: y }\n`,
    );
    const problems = problemsOf(`steps:\n${wrong.join('')}`);
    expect(problems).toHaveLength(101);
    expect(problems.at(-1)).toContain('there may be more problems; only 100 are told at once');
  });
});

function scriptOf(text: string): string {
  return `steps:\n  - name: a\n    script: |\n      ${text}\n`;
}

/** Names of fields that there are none of, many of them long. */
function fieldLines(): string {
  const names = Array.from({ length: 700 }, (_, at) => `    ${'stepname'.repeat(9)}${at}: x\n`);
  return `  - name: a\n${names.join('')}`;
}

describe('what would cost much is refused before it does', () => {
  test.each([
    ['a text of more than 64 KiB', `steps: [] #${'x'.repeat(65_536)}`, 'at most 65536 are taken'],
    ['lists in lists', '['.repeat(60_000), 'at most 16 maps and lists go into each other'],
    ['maps in maps', '{a: '.repeat(16_000), 'at most 16 maps and lists go into each other'],
    ['sequences on one line', '- '.repeat(32_000), 'at most 16 maps and lists'],
    ['explicit keys', '? '.repeat(32_000), 'at most 16 maps and lists'],
    ['more than 100 steps', `steps:\n${'  - {}\n'.repeat(101)}`, 'at most 100 are taken'],
    ['quotes that stay open', scriptOf("{{ \\' }}".repeat(7_000)), 'only 100 are told at once'],
    ['unknown references', scriptOf('{{x}}'.repeat(13_000)), 'only 100 are told at once'],
    ['unknown fields', `steps:\n${fieldLines()}`, 'only 100 are told at once'],
    [
      'choices',
      `variables: { a: { type: choice, values: [${'a,'.repeat(30_000)}] } }`,
      '1 to 50 are taken',
    ],
    ['half a character', 'description: \ud800', 'is no Unicode text'],
  ])(
    'a template with %s is refused early',
    (_, source, message) => {
      // The time of this thread alone: other work of a busy machine does not count.
      const began = process.threadCpuUsage();
      expect(problemsOf(source).join('\n')).toContain(message);
      expect(process.threadCpuUsage(began).user).toBeLessThan(8_000_000);
    },
    30_000,
  );

  test('a template with aliases that would grow is refused early', () => {
    const lines = Array.from({ length: 9 }, (_, at) => {
      const of = at === 0 ? 'x' : `*a${at - 1}, *a${at - 1}, *a${at - 1}`;
      return `a${at}: &a${at} [${of}]\n`;
    });
    const problems = problemsOf(`${lines.join('')}steps: []\n`);
    expect(problems.length).toBeGreaterThan(9);
    expect(problems.join('\n')).toContain('*a0 is an alias; anchors and aliases are not taken');
  });
});
