/** Responses that several pages share. */
import type { PageResponse } from '@rackwright/messages';

const text = 'text/plain; charset=utf-8';

export function textPage(status: number, message: string): PageResponse {
  const headers = { 'content-type': text, 'cache-control': 'no-store' };
  return { status, headers, body: Buffer.from(`${message}\n`) };
}

export function jsonPage(value: object): PageResponse {
  const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' };
  return { status: 200, headers, body: Buffer.from(`${JSON.stringify(value)}\n`) };
}

export const noContent: PageResponse = { status: 204, headers: { 'cache-control': 'no-store' } };

/** The page exists, and requires another method. */
export function wrongMethod(allow: string): PageResponse {
  const answer = textPage(405, `This page is asked for by ${allow}.`);
  return { ...answer, headers: { ...answer.headers, allow } };
}
