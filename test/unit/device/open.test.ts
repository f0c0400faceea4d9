/** Opening devices: what is said of those that do not work. */
import assert from 'node:assert/strict'
import { DEVICE_NAMES, DeviceError, openDevice, openedDevice } from '../../../src/device/index.js'

describe('opening a device', () => {
  after(() => openDevice('wasm'))

  it('auto takes the first that works, and tells in one line why not the others', async () => {
    const device = await openDevice('auto')
    assert.equal(openedDevice(), device)
    assert.match(device.reason, new RegExp(`^${device.name} works, [^\n]+$`))
    for (const name of DEVICE_NAMES.slice(0, DEVICE_NAMES.indexOf(device.name))) {
      assert.match(device.reason, new RegExp(`; ${name}: `))
      // Software is good enough where it is asked for.
      if (/computes on the processor/.test(device.reason) && name === 'webgpu') continue
      await assert.rejects(openDevice(name), DeviceError)
    }
  })

  it('a BLAS that is not there is an error only where it was named', async () => {
    await assert.rejects(openDevice('wasm', { blas: 'libnothing.so.7' }), /BLAS libnothing\.so\.7 cannot be used/)
    const { detail, hasFastProducts } = await openDevice('wasm', { blas: 'none' })
    assert.equal(detail, 'without a BLAS')
    assert.equal(hasFastProducts, false)
  })
})
