/** Tabs as links: each has an address, and the browser's own keys. */
interface TabsProps {
  readonly label: string;
  readonly tabs: readonly (readonly [string, string])[];
  readonly chosen: string;
  readonly href: (tab: string) => string;
}

export function Tabs({ label, tabs, chosen, href }: TabsProps) {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(([tab, title]) => (
        <a key={tab} href={href(tab)} aria-current={tab === chosen ? 'page' : undefined}>
          {title}
        </a>
      ))}
    </nav>
  );
}
