/**
 * Which of its kernels OpenBLAS takes. It goes by instruction sets, and for AMD's Zen 4 takes those for AVX-512, which that processor
 * executes in halves: there the ones for AVX2 are 5 to 7 % faster (measured, OpenBLAS 0.3.21). Zen 5 has whole units.
 */
import { readFileSync } from 'node:fs'

const VARIABLE = 'OPENBLAS_CORETYPE'
/** AMD's number for Zen 3 and Zen 4; only the latter has AVX-512. */
const FAMILY = '25'

/** Loads a library, and tells it which kernels to take if it is an OpenBLAS. What the user has chosen stays. */
export function withBestKernels<Library>(load: () => Library): Library {
  const core = process.env[VARIABLE] === undefined ? betterCore(processor()) : undefined
  if (core === undefined) return load()
  // It is read once, while the library loads.
  process.env[VARIABLE] = core
  try {
    return load()
  } finally {
    delete process.env[VARIABLE]
  }
}

/**
 * @param cpuinfo as Linux tells of its processors
 * @returns a name that OpenBLAS knows, or undefined where its own choice is good
 */
export function betterCore(cpuinfo: string): string | undefined {
  const value = (key: string) => new RegExp(`^${key}\\s*: (.*)$`, 'm').exec(cpuinfo)?.[1]
  const isZen4 =
    value('vendor_id') === 'AuthenticAMD' &&
    value('cpu family') === FAMILY &&
    value('flags')?.split(' ').includes('avx512f')
  return isZen4 ? 'Haswell' : undefined
}

/** Empty where there is no such file. */
function processor(): string {
  try {
    return readFileSync('/proc/cpuinfo', 'utf8')
  } catch {
    return ''
  }
}
