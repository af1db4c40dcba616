// SPDX-License-Identifier: Apache-2.0
// threads.cc - A C++ program with a thread, an exception and a shared library
#include <iostream>
#include <stdexcept>
#include <thread>

extern "C" int answer();

int main()
{
	std::thread([] {
		try {
			throw std::runtime_error("thrown");
		} catch (const std::exception &e) {
			std::cout << e.what() << ' ' << answer() << '\n';
		}
	}).join();
}
