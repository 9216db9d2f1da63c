/** Lists that a service gives in pages (DSP0266 §7.5). */
import type { BmcFailed, BmcResult } from '../driver.ts';
import { variantsOf } from '../vendors.ts';
import type { Get, Resource } from './conversation.ts';
import { type JsonObject, objectsAt, pathOf } from './json.ts';

const pagesMax = 32;

export interface MemberList {
  readonly members: readonly JsonObject[];
  /** Their paths, where they are references. */
  readonly paths: readonly string[];
  /** Some are missing here. */
  readonly hasMore: boolean;
  /** Why a page behind the first one could not be read. */
  readonly notRead: BmcFailed | undefined;
}

/** All pages of a list (DSP0266 §7.5), within bounds. A failure: not even the first was read. */
export async function listedIn(
  path: string,
  get: Get,
  membersMax: number,
): Promise<MemberList | Exclude<BmcResult<never>, { kind: 'ok' }>> {
  const all: JsonObject[] = [];
  let notRead: BmcFailed | undefined;
  let next: string | undefined = path;
  for (let page = 0; next !== undefined && page < pagesMax; page += 1) {
    const listed: BmcResult<Resource> = await get(next);
    if (listed.kind === 'transient' || (listed.kind === 'failed' && page === 0)) return listed;
    if (listed.kind === 'failed') {
      notRead = listed;
      break;
    }
    const { body } = listed.value;
    all.push(...objectsAt(body, 'Members'));
    next = variantsOf('nextPage')
      .map((key) => pathOf(body, key))
      .find((one) => one !== undefined);
    if (all.length >= membersMax) break;
  }
  const hasMore = next !== undefined || all.length > membersMax;
  const members = all.slice(0, membersMax);
  const paths = members.flatMap((one) => pathOf(one) ?? []);
  return { members, paths, hasMore, notRead };
}
