/**
 * TemplateService: people's templates, and the built-in ones.
 *
 * Invariants:
 * 1. Every stored source was parsed: a source with any problem is refused as a whole.
 * 2. Runs keep the template that they were started with, so that no change here affects one.
 * 3. Built-in templates are never written; a person's template never has a name with their prefix.
 */
import { create, fromBinary } from '@bufbuild/protobuf';
import {
  asTemplateId,
  type BoundService,
  bind,
  type ListTemplatesRequest,
  type Template,
  TemplateSchema,
  TemplateService,
  store as wire,
} from '@rackwright/messages';
import { pageSizeOf } from '../../call/paging.ts';
import { formatPageToken, parsePageToken } from '../../call/position.ts';
import { isDirectlyBelow, orUnavailable } from '../../records/index.ts';
import {
  builtInRevision,
  builtInSources,
  builtInTemplate,
  templateKey,
} from '../templates/index.ts';
import { createTemplate, updateTemplate } from './change-template.ts';
import { deleteTemplate } from './delete-template.ts';
import { existing, present, type TemplatesDependencies } from './template-view.ts';

/** A page ends early when its records exceed this; derived fields come on top. */
const pageBytesMax = 512 * 1024;

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

async function listTemplates(deps: TemplatesDependencies, request: ListTemplatesRequest) {
  const { store } = deps;
  const size = pageSizeOf(request.pageSize);
  const after = parsePageToken(store, '', request.pageToken);
  const { entries } = await orUnavailable(store.list('templates'));
  const ofPeople = entries
    .filter(({ key }) => isDirectlyBelow('templates', key))
    .map(({ key, value, revision }) => ({
      key,
      bytes: value.byteLength,
      show: () => present(deps, fromBinary(wire.TemplateRecordSchema, value), revision),
    }));
  const ours = Object.entries(builtInSources).map(([id, source]) => ({
    key: templateKey(asTemplateId(id)),
    bytes: source.length,
    show: () => {
      const template = builtInTemplate(asTemplateId(id)) ?? create(TemplateSchema);
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
