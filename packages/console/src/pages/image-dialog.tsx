/** Asks which image, then shows the plan of its deployment. */

import type { Host } from '@rackwright/messages';
import { useState } from 'preact/hooks';
import { idOf } from '../logic/format.ts';
import { Dialog } from '../parts/dialog.tsx';
import { PlanDialog } from '../parts/plan-dialog.tsx';

interface ImageDialogProps {
  readonly host: Host;
  readonly close: () => void;
}

export function ImageDialog({ host, close }: ImageDialogProps) {
  const [image, setImage] = useState(host.status?.image ?? '');
  const [isChosen, setChosen] = useState(false);
  if (isChosen) {
    const run = { case: 'provision', value: { image } } as const;
    return <PlanDialog verb="Deploy" host={host.name} run={run} close={close} />;
  }
  return (
    <Dialog title={`Deploy an image: ${idOf(host.name)}`} close={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          setChosen(true);
        }}
      >
        <label>
          Image
          <input
            value={image}
            required
            spellcheck={false}
            placeholder="registry.example.org/web:1.2, or https://HOST/PATH#sha256=HEX"
            onInput={(event) => setImage(event.currentTarget.value.trim())}
          />
        </label>
        <footer>
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={image === ''}>
            Show the plan
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
