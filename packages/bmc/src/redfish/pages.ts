/** Lists that a service gives in pages (DSP0266 §7.5). */
import type { BmcResult } from '../driver.ts';
import { waysOf } from '../vendors.ts';
import type { Get, Resource } from './conversation.ts';
import { type JsonObject, objectsAt, pathOf } from './json.ts';

const pagesMax = 32;

export interface MemberList {
  readonly members: readonly JsonObject[];
  readonly hasMore: boolean;
}

/** All pages of a list (DSP0266 §7.5), within bounds. */
export async function listedIn(
  path: string,
  get: Get,
  membersMax: number,
): Promise<MemberList | Exclude<BmcResult<never>, { kind: 'ok' }>> {
  const members: JsonObject[] = [];
  let next: string | undefined = path;
  for (let page = 0; next !== undefined && page < pagesMax; page += 1) {
    const listed: BmcResult<Resource> = await get(next);
    if (listed.kind !== 'ok') return listed;
    const { body } = listed.value;
    members.push(...objectsAt(body, 'Members'));
    if (members.length >= membersMax) break;
    next = waysOf('nextPage')
      .map((key) => pathOf(body, key))
      .find((one) => one !== undefined);
  }
  const hasMore = next !== undefined || members.length > membersMax;
  return { members: members.slice(0, membersMax), hasMore };
}
