import { equal } from 'node:assert/strict'
import { betterCore } from '../../../src/device/blas-core.js'

function cpuinfo(vendor: string, family: number, flags: string): string {
  const one = `vendor_id\t: ${vendor}\ncpu family\t: ${family}\nmodel name\t: a processor\nflags\t\t: ${flags}\n`
  return `processor\t: 0\n${one}\nprocessor\t: 1\n${one}`
}

describe('kernels of OpenBLAS', () => {
  it('are those for AVX2 on Zen 4, and else its own choice', () => {
    equal(betterCore(cpuinfo('AuthenticAMD', 25, 'fpu avx2 avx512f avx512dq')), 'Haswell')
    equal(betterCore(cpuinfo('AuthenticAMD', 25, 'fpu avx2')), undefined)
    equal(betterCore(cpuinfo('AuthenticAMD', 26, 'fpu avx2 avx512f')), undefined)
    equal(betterCore(cpuinfo('GenuineIntel', 6, 'fpu avx2 avx512f')), undefined)
    equal(betterCore(''), undefined)
  })
})
