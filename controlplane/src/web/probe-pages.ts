/**
 * Probes for load balancers and monitors, without a token: `/healthz` (it responds), `/readyz` (it
 * serves operators and agents now) and `/version`.
 */
import type { PageRequest, PageResponse } from '@rackwright/messages';
import { jsonPage, textPage, wrongMethod } from './answers.ts';

export interface ProbePages {
  /** Whether calls are served now, as in the gRPC health service. */
  readonly isReady: () => boolean;
  readonly version: string;
}

/** Undefined: another page. */
export function probePage(
  { method, path }: PageRequest,
  parts: ProbePages,
): PageResponse | undefined {
  const answer = answerTo(path, parts);
  const isRead = method === 'GET' || method === 'HEAD';
  return answer === undefined || isRead ? answer : wrongMethod('GET');
}

function answerTo(path: string, { isReady, version }: ProbePages): PageResponse | undefined {
  switch (path) {
    case '/healthz':
      return textPage(200, 'ok');
    case '/readyz':
      return isReady() ? textPage(200, 'ok') : textPage(503, 'not ready: calls are not served now');
    case '/version':
      return jsonPage({ version });
    default:
      return undefined;
  }
}
