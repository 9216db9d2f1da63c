/**
 * TemplateService: templates that people write, and the built-in ones beside them.
 *
 * Invariants:
 * 1. What is kept has been read by the parser: a source with any problem is refused as a whole.
 * 2. Runs keep what they were started with, so that no change here touches one.
 * 3. Built-in templates are never written; nothing of a person's is called as they may be.
 */
import { clone, create, equals, fromBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  aborted,
  alreadyExists,
  type BoundService,
  bind,
  type CreateTemplateRequest,
  type DeleteTemplateRequest,
  failedPrecondition,
  invalidArgument,
  type ListTemplatesRequest,
  notFound,
  type Template,
  TemplateSchema,
  TemplateService,
  type UpdateTemplateRequest,
  store as wire,
} from '@rackwright/api';
import { randomId } from '@rackwright/platform';
import type { Revision } from '@rackwright/store';
import { parseTemplate } from '@rackwright/template';
import { answered, deleteRecord, readRecord, writeRecord } from '../records/index.ts';
import {
  builtInPrefix,
  builtInRevision,
  builtInSources,
  builtInTemplate,
  derive,
  type KeptTemplate,
  readTemplateRecord,
  templateKey,
  underived,
} from '../workflow/templates/index.ts';
import { applyMask, maskPaths } from './field-mask.ts';
import { idProblem, nameProblem, requireName } from './names.ts';
import { checkPageSize, isDirectlyBelow } from './paging.ts';
import { adminActor, type RpcDependencies } from './ports.ts';
import {
  checkEtag,
  etagMismatch,
  formatPageToken,
  formatPosition,
  parsePageToken,
} from './position.ts';
import { checkLabels, checkRequestId } from './texts.ts';
import { Violations } from './violations.ts';

const updatablePaths = ['labels', 'source'];
/** Compare-and-sets that one change without an etag may lose. */
const roundsMax = 16;
/** How many request ids a template remembers. */
const requestIdsMax = 32;
/** Workflows named in a refusal to delete their template. */
const workflowsNamedMax = 5;
/** Problems of one source that are told; trailers are bounded. */
const problemsToldMax = 30;
/** A page ends early when its records exceed this; what is derived from them comes on top. */
const pageBytesMax = 1024 * 1024;

type TemplatesDependencies = Pick<RpcDependencies, 'store' | 'clock' | 'random' | 'log'>;

/** The service over these dependencies. */
export function createTemplateService(deps: TemplatesDependencies): BoundService {
  return bind(TemplateService, {
    createTemplate: (request) => createTemplate(deps, request),
    getTemplate: async ({ name }) => {
      const { record, revision } = await existing(deps, name);
      return present(deps, record, revision);
    },
    listTemplates: (request) => listTemplates(deps, request),
    updateTemplate: (request) => updateTemplate(deps, request),
    deleteTemplate: (request) => deleteTemplate(deps, request),
  });
}

async function existing(deps: TemplatesDependencies, name: string): Promise<KeptTemplate> {
  const kept = await readTemplateRecord(deps.store, requireName('templates', name));
  if (kept === undefined) throw notFound(name);
  return kept;
}

function present(
  { store }: TemplatesDependencies,
  record: wire.TemplateRecord,
  revision: Revision,
): Template {
  const { template } = record;
  const shown = derive(template ? clone(TemplateSchema, template) : create(TemplateSchema));
  shown.etag = shown.builtIn ? '' : formatPosition(store, revision);
  return shown;
}

async function createTemplate(
  deps: TemplatesDependencies,
  request: CreateTemplateRequest,
): Promise<Template> {
  const { templateId, requestId } = request;
  const given = request.template ?? create(TemplateSchema);
  const violations = new Violations();
  violations.addIf('template_id', idProblem(templateId) ?? reservedProblem(templateId));
  checkRequestId(requestId, violations);
  if (given.name !== '') {
    violations.addIf('template.name', nameProblem('templates', given.name));
  }
  checkTemplate(given, violations);
  violations.throwIfAny();
  const name = `templates/${templateId}`;
  const id = requestId === '' ? '' : `create:${requestId}`;
  const before = (await existingOr(deps, templateId)) ?? (await madeAndGone(deps, templateId, id));
  if (before !== undefined) return sameTemplate(deps, before, name, id);
  const time = timestampFromMs(deps.clock.nowMs());
  const template = { name, uid: randomId(deps.random), createTime: time, updateTime: time };
  const record = create(wire.TemplateRecordSchema, {
    template: { ...template, labels: { ...given.labels }, source: given.source },
    requestIds: id === '' ? [] : [id],
  });
  if (request.validateOnly) return present(deps, record, 0);
  const key = templateKey(templateId);
  const written = await writeRecord(deps, wire.TemplateRecordSchema, key, record, 'absent');
  if (written.kind === 'conflict') {
    return sameTemplate(deps, await existing(deps, name), name, id);
  }
  deps.log.info({ template: name, actor: adminActor }, 'template created');
  return present(deps, record, written.revision);
}

function existingOr({ store }: TemplatesDependencies, templateId: string) {
  return readRecord(store, wire.TemplateRecordSchema, templateKey(templateId));
}

/** The template that the same request made before; any other one is in the way. */
function sameTemplate(
  deps: TemplatesDependencies,
  { record, revision }: KeptTemplate,
  name: string,
  id: string,
): Template {
  const same = id !== '' && record.requestIds.includes(id);
  if (!same) throw alreadyExists(`${name} exists already.`);
  return present(deps, record, revision);
}

/** The last template of this name, when it is gone and this request was applied to it. */
async function madeAndGone(
  { store }: TemplatesDependencies,
  templateId: string,
  id: string,
): Promise<KeptTemplate | undefined> {
  if (id === '') return undefined;
  const changes = await answered(store.history(templateKey(templateId)));
  const last = changes.findLast((change) => change.kind === 'put');
  if (last === undefined) return undefined;
  const record = fromBinary(wire.TemplateRecordSchema, last.value);
  return record.requestIds.includes(id) ? { record, revision: last.revision } : undefined;
}

async function listTemplates(deps: TemplatesDependencies, request: ListTemplatesRequest) {
  const { store } = deps;
  const size = checkPageSize(request.pageSize);
  const after = parsePageToken(store, '', request.pageToken);
  const { entries } = await answered(store.list('templates'));
  const ofPeople = entries
    .filter(({ key }) => isDirectlyBelow('templates', key))
    .map(({ key, value, revision }) => ({
      key,
      bytes: value.byteLength,
      show: () => present(deps, fromBinary(wire.TemplateRecordSchema, value), revision),
    }));
  const ours = Object.entries(builtInSources).map(([templateId, source]) => ({
    key: templateKey(templateId),
    bytes: source.length,
    show: () => {
      const template = builtInTemplate(templateId) ?? create(TemplateSchema);
      return present(deps, create(wire.TemplateRecordSchema, { template }), builtInRevision);
    },
  }));
  const ahead = [...ofPeople, ...ours]
    .filter(({ key }) => key > after)
    .sort((one, other) => (one.key < other.key ? -1 : 1));
  const templates: Template[] = [];
  let bytes = 0;
  for (const [index, each] of ahead.entries()) {
    bytes += each.bytes;
    const lastKey = ahead[index - 1]?.key;
    const isFull = index >= size || bytes > pageBytesMax;
    if (isFull && lastKey !== undefined) {
      return { templates, nextPageToken: formatPageToken(store, '', lastKey) };
    }
    templates.push(each.show());
  }
  return { templates, nextPageToken: '' };
}

async function updateTemplate(
  deps: TemplatesDependencies,
  request: UpdateTemplateRequest,
): Promise<Template> {
  const { template: wanted, requestId } = request;
  if (wanted === undefined) {
    const description = 'is missing; give its name and what changes';
    throw invalidArgument([{ field: 'template', description }]);
  }
  refuseBuiltIn(requireName('templates', wanted.name, 'template.name'));
  const violations = new Violations();
  checkRequestId(requestId, violations);
  violations.throwIfAny();
  for (let round = 0; round < roundsMax; round++) {
    const updated = await tryUpdate(deps, request, wanted);
    if (updated !== undefined) return updated;
    if (wanted.etag !== '') throw etagMismatch(wanted.name);
  }
  throw aborted('TOO_BUSY', `${wanted.name} changes all the time; try again.`);
}

/** Undefined when another writer was faster. */
async function tryUpdate(
  deps: TemplatesDependencies,
  { updateMask, validateOnly, requestId }: UpdateTemplateRequest,
  wanted: Template,
): Promise<Template | undefined> {
  const { record, revision } = await existing(deps, wanted.name);
  const id = requestId === '' ? '' : `update:${requestId}`;
  if (id !== '' && record.requestIds.includes(id)) return present(deps, record, revision);
  checkEtag(deps.store, wanted.etag, revision, wanted.name);
  const violations = new Violations();
  const paths = maskPaths(TemplateSchema, updateMask, wanted, updatablePaths, violations);
  const next = clone(wire.TemplateRecordSchema, record);
  const template = next.template ?? create(TemplateSchema, { name: wanted.name });
  // A deletion that was begun is void once something has changed.
  next.requestIds = next.requestIds.filter((each) => !each.startsWith('delete:'));
  next.template = underived(template);
  applyMask(TemplateSchema, template, wanted, paths);
  checkTemplate(template, violations);
  violations.throwIfAny();
  const changes = !equals(wire.TemplateRecordSchema, record, next);
  if (validateOnly === true || !changes) return present(deps, next, revision);
  template.updateTime = timestampFromMs(deps.clock.nowMs());
  remember(next, id);
  const key = templateKey(requireName('templates', wanted.name));
  const written = await writeRecord(deps, wire.TemplateRecordSchema, key, next, revision);
  if (written.kind === 'conflict') return undefined;
  deps.log.info({ template: wanted.name, actor: adminActor }, 'template changed');
  return present(deps, next, written.revision);
}

async function deleteTemplate(
  deps: TemplatesDependencies,
  { name, etag, keepRuns, requestId }: DeleteTemplateRequest,
): Promise<Template> {
  const templateId = requireName('templates', name);
  refuseBuiltIn(templateId, 'name');
  const violations = new Violations();
  checkRequestId(requestId, violations);
  violations.throwIfAny();
  const id = requestId === '' ? '' : `delete:${requestId}`;
  const kept = await existingOr(deps, templateId);
  if (kept === undefined) {
    const gone = await madeAndGone(deps, templateId, id);
    if (gone === undefined) throw notFound(name);
    return present(deps, gone.record, gone.revision);
  }
  const { record } = kept;
  // What was begun under this id is finished whatever the etag says: it was written then.
  const begun = id !== '' && record.requestIds.includes(id);
  if (!begun) checkEtag(deps.store, etag, kept.revision, name);
  if (keepRuns !== true) await refuseWithWorkflows(deps, templateId);
  const revision = begun ? kept.revision : await markDeleted(deps, templateId, kept, id);
  const gone = await deleteRecord(deps, templateKey(templateId), revision);
  if (gone.kind === 'conflict') throw etagMismatch(name);
  deps.log.info({ template: name, actor: adminActor }, 'template deleted');
  return present(deps, record, revision);
}

/** The last revision of what goes names the request, so that it answers the same when repeated. */
async function markDeleted(
  deps: TemplatesDependencies,
  templateId: string,
  { record, revision }: KeptTemplate,
  id: string,
): Promise<Revision> {
  if (id === '') return revision;
  remember(record, id);
  const key = templateKey(templateId);
  const written = await writeRecord(deps, wire.TemplateRecordSchema, key, record, revision);
  if (written.kind === 'conflict') throw etagMismatch(`templates/${templateId}`);
  return written.revision;
}

async function refuseWithWorkflows(
  { store }: TemplatesDependencies,
  templateId: string,
): Promise<void> {
  const { entries } = await answered(store.list('workflows'));
  const names = entries
    .map(({ key }) => key.split('.'))
    .filter(([, , template, ...rest]) => template === templateId && rest.length === 0)
    .map(([, host, template]) => `hosts/${host}/workflows/${template}`);
  if (names.length === 0) return;
  const named = names.slice(0, workflowsNamedMax).join(', ');
  const more = names.length > workflowsNamedMax ? ', …' : '';
  throw failedPrecondition(
    'TEMPLATE_IN_USE',
    `templates/${templateId} is used by ${names.length} workflow(s): ${named}${more}. ` +
      'Delete them first, or keep their runs (keep_runs).',
  );
}

function remember(record: wire.TemplateRecord, id: string): void {
  if (id !== '') record.requestIds = [...record.requestIds, id].slice(-requestIdsMax);
}

function reservedProblem(templateId: string): string | undefined {
  return templateId.startsWith(builtInPrefix)
    ? `must not begin with "${builtInPrefix}"; those come with the control plane`
    : undefined;
}

function refuseBuiltIn(templateId: string, field = 'template.name'): void {
  if (builtInTemplate(templateId) === undefined) return;
  const description =
    'names a template that comes with the control plane and cannot be changed; ' +
    'create one of your own from its source';
  throw invalidArgument([{ field, description }]);
}

function checkTemplate({ labels, source }: Template, violations: Violations): void {
  checkLabels('template.labels', labels, violations);
  const parsed = parseTemplate(source);
  if (parsed.kind === 'ok') return;
  const { problems } = parsed;
  for (const { line, column, message } of problems.slice(0, problemsToldMax)) {
    violations.add('template.source', `line ${line}, column ${column}: ${message}`);
  }
  const [first] = problems.slice(problemsToldMax);
  if (first === undefined) return;
  const more = `${problems.length - problemsToldMax} more problems begin here`;
  violations.add('template.source', `line ${first.line}, column ${first.column}: ${more}`);
}
