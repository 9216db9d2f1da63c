/** Filters and orders of lists, as people write them. */
export { type FilterField, type FilterFields, fieldNamed, fieldNames, textsOf } from './fields.ts';
export { type Filter, parseFilter } from './filter.ts';
export { type Order, parseOrder, type SortKey } from './order.ts';
export { FilterError } from './reader.ts';
