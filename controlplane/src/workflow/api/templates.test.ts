/** Templates through the operators' API. */
import { create, toBinary } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { ArgumentType, store as wire } from '@rackwright/messages';
import { asWriteId, storeKey } from '@rackwright/store';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { writeRecord } from '../../records/index.ts';
import {
  type Fixture,
  failureOf,
  startFixture,
  violatedFields,
} from '../../services/rpc.fixture.ts';
import { sourceSha256 } from '../templates/index.ts';

let fixture: Fixture;

beforeEach(async () => {
  fixture = await startFixture();
});

afterEach(() => fixture.stop());

const source = `description: Set the clock
variables:
  server: { default: "{{ host.rack }}.example.org", description: Where time comes from }
  mode: { type: choice, values: [step, slew] }
steps:
  - name: clock
    if: vars.mode == "step"
    script: ntpd -q -p {{ vars.server }}
    timeout: 5m
    retries: 2
    destructive: false
    onFailure: tidy
handlers:
  - { name: tidy, script: rm -f /run/ntp }
`;

/** Descriptions of all violations of a failed call. */
async function told(call: Promise<unknown>): Promise<string[]> {
  const error = await failureOf(call);
  if (!('violations' in error)) throw new Error(`expected violations, got ${error.message}`);
  return error.violations.map(({ field, description }) => `${field}: ${description}`);
}

describe('a template', () => {
  test('is created, read, changed and deleted, and shows what its source says', async () => {
    const { templates } = fixture;
    const template = { source, labels: { team: 'time' } };
    const created = await templates.createTemplate({ templateId: 'set-clock', template });
    expect(created).toMatchObject({
      name: 'templates/set-clock',
      labels: { team: 'time' },
      source,
      digest: sourceSha256(source),
      builtIn: false,
      description: 'Set the clock',
      variables: [
        {
          name: 'server',
          type: ArgumentType.STRING,
          required: false,
          defaultValue: '{{ host.rack }}.example.org',
        },
        { name: 'mode', type: ArgumentType.CHOICE, required: true, values: ['step', 'slew'] },
      ],
      steps: [
        {
          name: 'clock',
          action: 'script',
          condition: 'vars.mode == "step"',
          timeout: durationFromMs(300_000),
          retries: 2,
          onFailure: 'tidy',
          onTimeout: 'fail',
          destructive: false,
        },
        { name: 'tidy', destructive: true, onFailure: 'fail' },
      ],
    });
    const name = created.name;
    expect(await templates.getTemplate({ name })).toEqual(created);
    const again = templates.createTemplate({ templateId: 'set-clock', template });
    expect((await failureOf(again)).kind).toBe('alreadyExists');
    const shorter = source.replace('Set the clock', 'Set it');
    const changed = await templates.updateTemplate({
      template: { name, etag: created.etag, source: shorter },
      updateMask: { paths: ['source'] },
    });
    expect(changed).toMatchObject({ description: 'Set it', labels: { team: 'time' } });
    expect(changed.digest).toBe(sourceSha256(shorter));
    const stale = { name, etag: created.etag };
    const late = templates.updateTemplate({ template: { ...stale, source } });
    expect((await failureOf(late)).kind).toBe('aborted');
    expect((await failureOf(templates.deleteTemplate(stale))).kind).toBe('aborted');
    await templates.deleteTemplate({ name, etag: changed.etag });
    expect((await failureOf(templates.getTemplate({ name }))).kind).toBe('notFound');
    expect((await failureOf(templates.deleteTemplate({ name }))).kind).toBe('notFound');
  });

  test('a wrong template is refused with every problem at its line and column', async () => {
    const { templates } = fixture;
    const wrong = `steps:
  - name: a
    scrip: echo
  - name: b
    command: { image: "registry.example.org/x:1" }
    timeout: 2 hours
`;
    const call = templates.createTemplate({ templateId: 'a', template: { source: wrong } });
    expect(await told(call)).toEqual([
      expect.stringMatching(/^template\.source: line 2, column 5: does nothing; give it one of/),
      'template.source: line 3, column 5: there is no field "scrip" here; did you mean "script"?',
      expect.stringMatching(/^template\.source: line 5, column 23: must name the image by digest/),
      'template.source: line 6, column 14: must be a time as "90s", "5m" or "2h"',
    ]);
    expect((await templates.listTemplates({})).templates.every(({ builtIn }) => builtIn)).toBe(
      true,
    );
  });

  test('a template with too many problems for an answer says how many more there are', async () => {
    const { templates } = fixture;
    const lines = Array.from({ length: 80 }, (_, index) => `  - { name: a${index}, wait: x }\n`);
    const template = { source: `steps:\n${lines.join('')}` };
    const problems = await told(templates.createTemplate({ templateId: 'a', template }));
    expect(problems).toHaveLength(31);
    expect(problems.at(-1)).toBe(
      'template.source: line 32, column 24: 50 more problems begin here',
    );
  });

  test('a template that is only validated is checked like any other, and not kept', async () => {
    const { templates } = fixture;
    const template = { source };
    const shown = await templates.createTemplate({
      templateId: 'a',
      template,
      validateOnly: true,
    });
    expect(shown.steps).toHaveLength(2);
    const { templates: kept } = await templates.listTemplates({});
    expect(kept.some(({ name }) => name === 'templates/a')).toBe(false);
    const bad = templates.createTemplate({
      templateId: 'A',
      template: { source: '', labels: { A: '' } },
      validateOnly: true,
    });
    expect(await violatedFields(bad)).toEqual([
      'template_id',
      'template.labels',
      'template.source',
    ]);
    const made = await templates.createTemplate({ templateId: 'a', template });
    const { name } = made;
    await templates.updateTemplate({
      template: { name, source: source.replace('Set', 'Wind') },
      validateOnly: true,
    });
    expect(await templates.getTemplate({ name })).toEqual(made);
  });

  test('acts once for one request id, and answers the same', async () => {
    const { templates } = fixture;
    const request = { templateId: 'a', template: { source }, requestId: 'one' };
    const made = await templates.createTemplate(request);
    expect(await templates.createTemplate(request)).toEqual(made);
    const { name } = made;
    const change = { template: { name, source: source.replace('Set', 'Wind') }, requestId: 'two' };
    const changed = await templates.updateTemplate(change);
    const third = await templates.updateTemplate({
      template: { name, source },
      requestId: 'three',
    });
    expect(third.source).toBe(source);
    expect(await templates.updateTemplate(change)).toEqual(third);
    expect(changed.source).not.toBe(source);
    const gone = await templates.deleteTemplate({ name, requestId: 'four' });
    expect(await templates.deleteTemplate({ name, requestId: 'four' })).toEqual(gone);
    expect(await templates.createTemplate(request)).toMatchObject({ uid: made.uid });
    expect((await failureOf(templates.getTemplate({ name }))).kind).toBe('notFound');
    const other = templates.deleteTemplate({ name, requestId: 'five' });
    expect((await failureOf(other)).kind).toBe('notFound');
    const anew = await templates.createTemplate({ templateId: 'a', template: { source } });
    expect(await templates.deleteTemplate({ name, requestId: 'four' })).toEqual(gone);
    expect(await templates.getTemplate({ name })).toEqual(anew);
  });

  test('a template with workflows is not deleted, unless their runs are kept', async () => {
    const { templates, store } = fixture;
    await templates.createTemplate({ templateId: 'a', template: { source } });
    const record = create(wire.WorkflowRecordSchema);
    const names = Array.from({ length: 7 }, (_, index) => `h${index}`);
    for (const host of names) {
      const key = storeKey('workflows', host, 'a');
      await writeRecord({ store }, wire.WorkflowRecordSchema, key, record, 'absent');
    }
    const name = 'templates/a';
    const refused = await failureOf(templates.deleteTemplate({ name }));
    expect(refused).toMatchObject({ kind: 'failedPrecondition', reason: 'TEMPLATE_IN_USE' });
    expect(refused.message).toContain('7 workflows: hosts/h0/workflows/a, hosts/h1/workflows/a');
    expect(refused.message).toContain('hosts/h4/workflows/a, …');
    await templates.deleteTemplate({ name, keepRuns: true });
    expect((await failureOf(templates.getTemplate({ name }))).kind).toBe('notFound');
    expect(await store.get(storeKey('workflows', 'h0', 'a'))).toMatchObject({ kind: 'found' });
  });

  test('a template of an older version that cannot be read is shown as it is', async () => {
    const { templates, store } = fixture;
    const name = 'templates/old';
    const record = create(wire.TemplateRecordSchema, { template: { name, source: 'a: b' } });
    const value = toBinary(wire.TemplateRecordSchema, record);
    await store.put(storeKey('templates', 'old'), value, 'absent', asWriteId('w1'));
    expect(await templates.getTemplate({ name })).toMatchObject({ source: 'a: b', steps: [] });
  });
});

describe('the built-in templates', () => {
  test('are listed among the others in the order of their names, page after page', async () => {
    const { templates } = fixture;
    await templates.createTemplate({ templateId: 'zz', template: { source } });
    await templates.createTemplate({ templateId: 'aa', template: { source } });
    const all = (await templates.listTemplates({})).templates.map(({ name }) => name);
    expect(all).toEqual([
      'templates/aa',
      'templates/rackwright-check-memory',
      'templates/rackwright-clear-event-log',
      'templates/rackwright-diagnose',
      'templates/zz',
    ]);
    const paged: string[] = [];
    let pageToken = '';
    do {
      const page = await templates.listTemplates({ pageSize: 2, pageToken });
      expect(page.templates.length).toBeLessThanOrEqual(2);
      paged.push(...page.templates.map(({ name }) => name));
      pageToken = page.nextPageToken;
    } while (pageToken !== '');
    expect(paged).toEqual(all);
  });

  test('cannot be changed, deleted or made, nor their prefix be taken', async () => {
    const { templates } = fixture;
    const name = 'templates/rackwright-diagnose';
    expect(await templates.getTemplate({ name })).toMatchObject({ builtIn: true, etag: '' });
    const update = templates.updateTemplate({ template: { name, source } });
    expect(await violatedFields(update)).toEqual(['template.name']);
    expect(await violatedFields(templates.deleteTemplate({ name }))).toEqual(['name']);
    const make = templates.createTemplate({ templateId: 'rackwright-x', template: { source } });
    expect(await violatedFields(make)).toEqual(['template_id']);
  });
});
