import { RerunClass, SkipCause, StepState } from '@rackwright/messages';
import { describe, expect, test } from 'vitest';
import { host, scopeOf } from './hosts.fixture.ts';
import { conditionHolds, parseTemplate, renderTemplate } from './index.ts';
import type { RenderedStep, RenderScope } from './types.ts';

/** The time of the thread; far above the usual one, far below that of quadratic growth. */
const boundedCpuMicros = 5_000_000;
const digest = 'ab'.repeat(32);

/** The steps that a text renders to. Fails when it is not right. */
function rendered(source: string, scope: RenderScope = scopeOf()): readonly RenderedStep[] {
  const parsed = parseTemplate(source);
  if (parsed.kind === 'bad') throw new Error(JSON.stringify(parsed.problems));
  const result = renderTemplate(parsed.template, scope);
  if (result.kind === 'bad') throw new Error(JSON.stringify(result.problems));
  return result.rendered.steps;
}

/** The problems of a rendering, as "line:column path: message". */
function problemsOf(source: string, scope: RenderScope = scopeOf()): string[] {
  const parsed = parseTemplate(source);
  if (parsed.kind === 'bad') throw new Error(JSON.stringify(parsed.problems));
  const result = renderTemplate(parsed.template, scope);
  if (result.kind === 'ok') throw new Error('nothing is wrong with it');
  return result.problems.map((each) => `${each.line}:${each.column} ${each.path}: ${each.message}`);
}

const whole = `description: Set the clock
timeout: 2h
variables:
  ntp: { type: string, default: "{{ host.rack }}.example.org", description: Where time comes from }
steps:
  - name: clock
    script: |
      ntpd -q -p {{ vars.ntp }}
    idempotent: true
    destructive: false
    timeout: 5m
    retries: 2
    onFailure: tidy-up
  - name: sel
    bmc: management.clear_event_log
  - name: again
    power: reboot
  - name: kexec
    script: kexec -e
    handOff: true
  - name: check
    if: steps.clock.exitCode == 0 and host.labels.role == "worker"
    command: { image: "registry.example.org/tools/check@sha256:${digest}", arguments: ["--all"] }
  - name: look
    hold: see that the lamp is green
  - { name: settle, wait: 30s }
  - { name: tell, webhook: { url: "https://hooks.example.org/a", body: "{{ host.name }} is done" } }
  - name: motd
    file:
      path: /etc/motd
      content: "{{ host.id }}\\n"
      disk: "{{ host.disks[0].serial }}"
      partition: 2
      filesystem: ext4
handlers:
  - { name: tidy-up, script: "rm -f /run/x" }
`;

describe('a template that is rendered', () => {
  test('comes to what the engine runs, in order, with its handlers last', () => {
    const steps = rendered(whole);
    expect(steps.map(({ title, action, step }) => [title, action, step])).toEqual([
      ['clock', 'script', 'run.script'],
      ['sel', 'bmc', 'management.clear_event_log'],
      ['again', 'power', 'reboot'],
      ['kexec', 'script', 'run.script'],
      ['check', 'command', 'run.command'],
      ['look', 'hold', 'hold'],
      ['settle', 'wait', 'wait'],
      ['tell', 'webhook', 'webhook'],
      ['motd', 'file', 'run.file'],
      ['tidy-up', 'script', 'run.script'],
    ]);
    expect(steps[0]).toEqual({
      title: 'clock',
      action: 'script',
      step: 'run.script',
      arguments: { script: 'ntpd -q -p r1.example.org\n', interpreter: '/bin/sh' },
      retries: 2,
      timeoutMs: 300_000,
      onFailure: 'tidy-up',
      onTimeout: 'fail',
      condition: '',
      skipCause: SkipCause.UNSPECIFIED,
      skippedBecause: '',
      handOff: false,
      destructive: false,
      rerunClass: RerunClass.SAFE,
      handler: false,
    });
    expect(steps[3]).toMatchObject({ handOff: true, rerunClass: RerunClass.NEVER_TWICE });
    expect(steps[6]?.arguments).toEqual({ seconds: '30' });
    expect(steps[7]?.arguments).toMatchObject({ method: 'POST', body: 'hosts/h1 is done' });
    expect(steps[9]?.handler).toBe(true);
  });

  test('gives commands their arguments as JSON, and files their places', () => {
    const steps = rendered(whole);
    expect(steps[4]?.arguments).toEqual({
      image: `registry.example.org/tools/check@sha256:${digest}`,
      arguments: '["--all"]',
    });
    expect(steps[8]).toMatchObject({
      arguments: {
        path: '/etc/motd',
        content: 'h1\n',
        encoding: 'text',
        mode: '0644',
        disk: 'D1',
        partition: '2',
        filesystem: 'ext4',
      },
      destructive: true,
    });
  });

  test('keeps of a condition what only the run can tell', () => {
    const condition = rendered(whole)[4]?.condition ?? '';
    expect(condition).toBe('steps.clock.exitCode == 0');
    const ended = (exitCode: number) =>
      new Map([['clock', { state: StepState.SUCCEEDED, exitCode, lastOutput: '' }]]);
    expect(conditionHolds(condition, ended(0))).toBe(true);
    expect(conditionHolds(condition, ended(1))).toBe(false);
    expect(conditionHolds(condition, new Map())).toBe(false);
  });

  test('leaves a step out whose condition can never hold, and asks nothing more of it', () => {
    const other = { ...host, labels: {} };
    const source =
      'steps:\n  - { name: a, if: host.labels.role == "x", script: "{{ host.labels.none }}" }\n';
    expect(rendered(source, { ...scopeOf(), host: other })[0]).toMatchObject({
      condition: 'false',
      skipCause: SkipCause.NEVER,
      skippedBecause: 'its condition does not hold for this host: host.labels.role == "x"',
      arguments: {},
    });
  });

  test('reports where a value is missing or does not fit', () => {
    const source = `variables:
  ntp: {}
  count: { type: integer, default: 3 }
steps:
  - name: a
    script: echo {{ vars.ntp }}
`;
    expect(problemsOf(source, scopeOf({ count: 'x', nto: '1' }))).toEqual([
      '1:1 variables.nto: the template has no variable "nto"; did you mean "ntp"?',
      '2:3 variables.ntp: the variable "ntp" is not set; give it a value',
      '3:3 variables.count: "x" is given: the variable must be a whole number',
    ]);
    const unknown = 'steps:\n  - name: a\n    script: |\n      echo {{ host.manufacturer }}\n';
    expect(problemsOf(unknown)).toEqual([
      expect.stringMatching(/^4:15 steps\[0\]\.script: host\.manufacturer is not known of this/),
    ]);
  });
});

/** The value of one expression for the host of the fixture. */
function filled(expression: string): string | undefined {
  const source = `variables:
  settle: { type: duration, default: 90s }
  on: { type: boolean, default: true }
steps:
  - name: a
    script: |
      {{ ${expression} }}
`;
  return rendered(source)[0]?.arguments['script']?.replace(/\n$/, '');
}

describe('an expression', () => {
  test.each([
    ['host.name', 'hosts/h1'],
    ['host.labels["example.com/site"]', 'north'],
    ['host.bmc.address', '192.0.2.7'],
    ['host.bootMacs[1]', '52:54:00:00:00:02'],
    ['host.memoryBytes', '68719476736'],
    ['host.disks[0].sizeBytes > 1000000000000', 'true'],
    ['host.disks[1].serial == ""', 'false'],
    ['host.disks[1].serial != ""', 'true'],
    ['host.manufacturer not in ["Acme"]', 'true'],
    ['default(host.labels.zone, "none")', 'none'],
    ['isSet(host.labels.zone)', 'false'],
    ['isSet(host.labels.toString)', 'false'],
    ['quote(host.serial)', "'SN'\\''1'"],
    ['json(host.serial)', '"SN\'1"'],
    [
      'json(host.interfaces)',
      '[{"name":"eth0","mac":"52:54:00:00:00:01","speedMbps":null,"linkUp":true}]',
    ],
    ['join(host.bootMacs, " ")', '52:54:00:00:00:01 52:54:00:00:00:02'],
    ['length(host.disks) == 1', 'true'],
    ['lower(host.product)', 'box 9'],
    ['vars.settle', '90s'],
    ['vars.settle > 60 and vars.settle <= 90', 'true'],
    ['vars.on and host.id in ["h1", "h2"]', 'true'],
    ['not vars.on or host.id == "h2"', 'false'],
    ['run.number + 1', undefined],
    ['run.number in [1, 3]', 'true'],
    ['"{{ }}"', '{{ }}'],
    ["'a\\'b\\n'", "a'b\n"],
  ])('%s comes to %s', (expression, text) => {
    if (text === undefined) expect(() => filled(expression)).toThrow('is not understood here');
    else expect(filled(expression)).toBe(text);
  });
});

describe('a condition that is left for the run', () => {
  const kept = (condition: string) =>
    rendered(`steps:
  - { name: a, script: x }
  - name: b
    if: ${condition}
    wait: 1s
`)[1]?.condition;

  test.each([
    ['steps.a.exitCode == 0 or host.id == "h1"', ''],
    ['steps.a.exitCode == 0 and host.id == "h2"', 'false'],
    ['not (steps.a.state in ["failed", "skipped"])', 'not steps.a.state in ["failed", "skipped"]'],
    [
      'steps.a.output in host.bootMacs',
      'steps.a.output in ["52:54:00:00:00:01", "52:54:00:00:00:02"]',
    ],
    ['steps.a.output == host.serial', 'steps.a.output == "SN\'1"'],
    ['steps.a.output == host.manufacturer', 'false'],
    ['default(steps.a.exitCode, 1) == 0', 'default(steps.a.exitCode, 1) == 0'],
    ['default(host.labels.none, steps.a.output) == "x"', 'steps.a.output == "x"'],
    [
      'steps.a.state == "failed" and (steps.a.exitCode == 1 or steps.a.exitCode == 2)',
      'steps.a.state == "failed" and (steps.a.exitCode == 1 or steps.a.exitCode == 2)',
    ],
  ])('%s becomes %j', (condition, left) => {
    expect(kept(condition)).toBe(left);
  });

  test('asks for state, exit code and output, and takes what is not known for unequal', () => {
    const outcome = { state: StepState.FAILED, exitCode: undefined, lastOutput: 'no space\n' };
    const steps = new Map([['a', outcome]]);
    expect(conditionHolds('steps.a.state == "failed"', steps)).toBe(true);
    expect(conditionHolds('steps.a.exitCode == 0', steps)).toBe(false);
    expect(conditionHolds('steps.a.exitCode != 0', steps)).toBe(true);
    expect(conditionHolds('steps.a.output == "no space"', steps)).toBe(true);
    expect(conditionHolds('steps.b.state == "pending"', steps)).toBe(true);
    expect(conditionHolds('', steps)).toBe(true);
    expect(conditionHolds('false', steps)).toBe(false);
    expect(conditionHolds('this is none', steps)).toBe(false);
  });
});

describe('what is filled in', () => {
  test('is checked like what is written', () => {
    const source = `variables: { image: {}, wait: { default: 2d } }
steps:
  - { name: a, command: { image: "{{ vars.image }}" } }
  - { name: b, wait: "{{ vars.wait }}" }
`;
    for (const image of ['r.example/a', 'localhost/a_b', 'r:5000/a/b--c:1.2', 'a.b:80/x__y.z']) {
      const pinned = scopeOf({ image: `${image}@sha256:${digest}` });
      expect(problemsOf(source, pinned)).toEqual([expect.stringMatching(/^4:22 /)]);
    }
    expect(problemsOf(source, scopeOf({ image: 'a/b:latest' }))).toEqual([
      expect.stringMatching(/^3:34 steps\[0\]\.command\.image: must name the image by digest/),
      expect.stringMatching(/^4:22 steps\[1\]\.wait: must be a time as "90s", "5m" or "2h"/),
    ]);
  });

  test('comes to 48 KiB at most', () => {
    const long = 'x'.repeat(4_000);
    const steps = Array.from(
      { length: 13 },
      (_, at) => `  - { name: a${at}, script: "{{ vars.a }}" }\n`,
    );
    const source = `variables: { a: {} }\nsteps:\n${steps.join('')}`;
    expect(problemsOf(source, scopeOf({ a: long }))).toEqual([
      expect.stringMatching(/^15:26 steps\[12\]\.script: makes it too much: filled in, all steps/),
    ]);
    const many = '{{vars.a}}'.repeat(6_000);
    const wide = `variables: { a: {} }\nsteps:\n  - { name: b, script: "${many}" }\n`;
    const began = process.threadCpuUsage();
    expect(problemsOf(wide, scopeOf({ a: long }))).toHaveLength(1);
    expect(process.threadCpuUsage(began).user).toBeLessThan(boundedCpuMicros);
  });
});
