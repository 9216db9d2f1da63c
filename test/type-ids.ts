/** `npm run gen`, a part of it: gives the ids in the generated messages their kinds. */
import { generated } from './tidy/api.ts';
import { typeIds } from './tidy/ids.ts';

typeIds(generated);
