/** Bars of shares: hosts by state, hosts of a rollout, deployments. */
import { grouped } from '../logic/format.ts';
import type { Tone } from '../logic/host-tones.ts';
import { sharesOf } from '../logic/rollout.ts';

export interface SharePart {
  readonly label: string;
  readonly count: number;
  readonly tone: Tone;
  readonly href?: string;
}

interface SharesProps {
  readonly label: string;
  readonly parts: readonly SharePart[];
  readonly hasLegend?: boolean;
}

/** One bar, and below it what each part is, with links. */
export function Shares({ label, parts, hasLegend = true }: SharesProps) {
  const shares = sharesOf(parts.map(({ count }) => count));
  const text = parts.map(({ label: each, count }) => `${each} ${count}`).join(', ');
  return (
    <div class="shares">
      <svg
        viewBox="0 0 100 4"
        preserveAspectRatio="none"
        role="img"
        aria-label={`${label}: ${text}`}
      >
        <rect class="ground" width="100" height="4" />
        {parts.map((part, index) => (
          <rect
            key={part.label}
            class={`fill ${part.tone}`}
            x={shares[index]?.fromPercent ?? 0}
            width={Math.max(0, (shares[index]?.percent ?? 0) - 0.15)}
            height="4"
          />
        ))}
      </svg>
      {hasLegend && (
        <ul class="legend">
          {parts.map((part) => (
            <li key={part.label}>
              <span class={`swatch ${part.tone}`} />
              {part.href === undefined ? part.label : <a href={part.href}>{part.label}</a>}{' '}
              <strong>{grouped(part.count)}</strong>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
