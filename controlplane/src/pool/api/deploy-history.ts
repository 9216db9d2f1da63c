/** Pages of a pool's deploy history, newest first. */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  type DeployHistoryEntry,
  DeployHistoryEntrySchema,
  invalidArgument,
  type ListDeployHistoryRequest,
} from '@rackwright/messages';
import type { StateStore } from '@rackwright/store';
import { pageSizeOf } from '../../call/paging.ts';
import { formatPageToken, parsePageToken } from '../../call/position.ts';
import { compareEntries } from '../index.ts';

/** `entries` is the whole history; a later deployment moves to the first page. */
export function historyPage(
  store: StateStore,
  request: Pick<ListDeployHistoryRequest, 'parent' | 'pageSize' | 'pageToken'>,
  entries: readonly DeployHistoryEntry[],
): { entries: DeployHistoryEntry[]; nextPageToken: string } {
  const size = pageSizeOf(request.pageSize);
  const filter = `deployHistory of ${request.parent}`;
  const after = entryOf(parsePageToken(store, filter, request.pageToken));
  const rest =
    after === undefined ? entries : entries.filter((each) => compareEntries(each, after) > 0);
  const page = rest.slice(0, size);
  const last = rest.length > size ? page.at(-1) : undefined;
  const nextPageToken = last === undefined ? '' : formatPageToken(store, filter, textOf(last));
  return { entries: page, nextPageToken };
}

/** Only the fields of an entry that determine its position. */
function textOf({ digest, lastDeployed }: DeployHistoryEntry): string {
  const entry = { digest, ...(lastDeployed === undefined ? {} : { lastDeployed }) };
  const bytes = toBinary(DeployHistoryEntrySchema, create(DeployHistoryEntrySchema, entry));
  return Buffer.from(bytes).toString('base64url');
}

function entryOf(text: string): DeployHistoryEntry | undefined {
  if (text === '') return undefined;
  try {
    return fromBinary(DeployHistoryEntrySchema, Buffer.from(text, 'base64url'));
  } catch {
    // The message of the decoder describes bytes that the caller has never seen.
    const description = 'is no page token of this API; send the last one received, or none';
    throw invalidArgument([{ field: 'page_token', description }]);
  }
}
