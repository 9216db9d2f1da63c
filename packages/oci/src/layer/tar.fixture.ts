/**
 * Archives that GNU tar 1.34 has written, gzip and base64: the same folder in four formats.
 *
 * "./", "./f" (mode 4755, "hello\n"), "./hard" (a hard link to f), "./long/" with a name of 120
 * characters (in the formats that can hold it) and the symbolic link "link" to "../f", "./pipe" (a
 * named pipe), "./sticky/" (mode 1777).
 */
export const captures: Readonly<Record<'ustar' | 'gnu' | 'pax' | 'v7', string>> = {
  ustar:
    'H4sIAAAAAAACA+3WTQ6CMBCG4a49BSdoO/TvPEZRCA0QwIW3t0pMDAuTGltj+J5N2QF5MwNcsORk4Iy5n+SMfD2f' +
    'mHRKW6PN41o6rSwrDMvgMs37MdzyGy+5PPxy/gkuTjn66/f97bq/JWKFRP/k6sr7fsdgo7io9+Px1/O/2v8kbTgK' +
    'yrGcNr//fd+dRer+MrK/cgbf/4z9fdO1afs7F9GfrAr9S55hAWy+/9AMVfr/f6t11PxTyQqL+c/Qf5qbQ3sVaftT' +
    '3PyHzwVh/wMAAAAAAAAAAAAAAHziBg++x7MAKAAA',
  gnu:
    'H4sIAAAAAAACA+2XS27CQAyGve4p5gQZO57HtgfIJVBLS0QUEA8Jbt8pUitIVShSZ1jM/22cRXaff4/dWMoOJ6L3' +
    'n1Wi5/P6BXFUF7zzp28OooGMpwLst7vZxhiqlMa+lfDvrvsPU/8qQobhPzuL+TCsnghUm//FbPP66PxP53/UVIyU' +
    'GE7Vz/9hNb7b3P7vfP9j+h/vf0H/Qz8u8/qP8e/+hVWT/7YpMACq99/Y5y61QJevA04bnnP07fqycsuTXkjdEpRM' +
    'h/yXyv/4ILCAVeD/LP+/zH+5nP+q7B3uvxIcEIHK87/u1/Ps99+N/P/c/6UlE5D/Av63u/5lebR5/ctd+z9H5wX3' +
    'HwAAAAAAAAAAAMB/8AF3GkklACgAAA==',
  pax:
    'H4sIAAAAAAACA+2X2Q6CMBBF++xX9Atoh25Pfgxxg0iQKCb499YtUYwaEltCuOdleGM5vcNMIlhwpMcZc6nkjHyu' +
    'D5h0SlujzfVaOq0s44ZF4Hhosr2/5T9e8vbwtzoSErGO4V9/92+7/i0R4xL+g5OvynI3Y2CiJCLP9suh89/p/ySt' +
    'L5xiNKfJ9/9yV21EaP+yp3/lDP7/Ef2XRbUN69+5Hv7JKu8/TSI0APi/+G9FFY7rhKf12yd6yE/9sPfiXyki3//b' +
    'MeV/pJByvM6afH4/CNVAYAQdNP9B3T7l/0P/7+ZfK6Ox/8WgRQQmnv+6qFfB978f+X+f/yll3CL/EfwfmmKxPYmw' +
    '/qnf/O/XRcL+BwAAAAAAAAAAAPAPzjTG5WQAKAAA',
  v7:
    'H4sIAAAAAAACA+3VOw7CMBAE0K05RU5ge/3b8yB+iWIlEtBwexIECKVApHCQlXnNuvWOPFaasjMDCWGcLMF8zhcy' +
    '4nwMPjzOJloWqgIV5H2R5yyE0sclVuO/5x+n+Tu2VBHyz64+pNRvCFZK6Xp73v/7/U/7X1xkqniJclp9/6e+O+ns' +
    'q5mZP4eI/3/B/FPTtXnzF/k9fzaeh/ytKqgAis3/cm127U3nXQ3Pyn9oC2fx/gEAAAAAAAAAAAAAAADmugP3chVs' +
    'ACgAAA==',
};
