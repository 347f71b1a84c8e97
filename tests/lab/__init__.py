# SPDX-License-Identifier: Apache-2.0
"""The lab: network namespaces with kernel VXLAN hosts around a real gateway and controller.

A library for `./demo` and for the groups `topology` and `packets`. Everything it creates is in
network namespaces and processes named after the lab and written down in a manifest before it is
made, so that a crashed run can be cleared exactly. Bounded waits everywhere; standard library only.
"""
