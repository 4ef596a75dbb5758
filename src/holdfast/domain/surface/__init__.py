"""What the runtime's operations take and answer: requests and reports, frozen and without behaviour."""
