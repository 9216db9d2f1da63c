/** What ships for Prometheus and Grafana. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const folder = join(import.meta.dirname, '../../../packages/debian/files/controlplane');
/** Alert rules. */
export const rulesFile: string = join(folder, 'rackwright.rules.yaml');

interface Panel {
  readonly title: string;
  readonly type: string;
  readonly targets?: readonly { readonly expr: string }[];
}

export interface DashboardQuery {
  readonly panel: string;
  readonly expr: string;
}

/** Every query of the dashboard, with its variables replaced as Grafana does it. */
export function dashboardQueries(rateInterval: string): DashboardQuery[] {
  const text = readFileSync(join(folder, 'rackwright-dashboard.json'), 'utf8');
  const { panels } = JSON.parse(text) as { readonly panels: readonly Panel[] };
  return panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }) => ({
      panel: title,
      expr: expr.replaceAll('$__rate_interval', rateInterval),
    })),
  );
}
